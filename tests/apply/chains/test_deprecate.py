"""Another release of the engine: a reason to verify, none to compute anything again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odfbuild.apply.definitions import by_another_engine
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.engine import release
from odfbuild.engine.contract import TransformResult, TransformTask
from odfbuild.inspect.verify import step_findings
from odfbuild.odf.model import SetTransform, SqlQueryStep, TransformSql
from odfbuild.survey import survey
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

OLD, NEW = "4.3.0-aaaaaaaa", "4.4.0-bbbbbbbb"


class Other(PlainEngine):
    """A release that computes something else."""

    def transform(self, task: TransformTask) -> TransformResult:
        query = SqlQueryStep(query=QUERY.replace("10", "11"))
        other = replace(task.transform, queries=(query,))
        return super().transform(replace(task, transform=other))


def install(version: str, monkeypatch: pytest.MonkeyPatch, engine: PlainEngine) -> None:
    share(engine, monkeypatch)
    for module in (release, survey, step_findings):
        monkeypatch.setattr(module, "engine_version", lambda: version)


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program after an apply by the old release, with the new one installed."""
    program = Program(tiny.root, monkeypatch, capsys)
    install(OLD, monkeypatch, PlainEngine())
    program.apply()
    install(NEW, monkeypatch, PlainEngine())
    return program


def releases(tiny: Tiny) -> list[str | None]:
    events = tiny.events("derived")
    return [each.transform.version for each in events if isinstance(each, SetTransform)]


def test_the_chain_says_which_release_computes(tiny: Tiny, odfbuild: Program) -> None:
    assert releases(tiny) == [OLD]


def test_another_release_makes_nothing_stale(tiny: Tiny, odfbuild: Program) -> None:
    before = tiny.state()
    assert "No changes" in odfbuild.ok("plan").out
    assert odfbuild.ok("diff").out == "No differences.\n"
    odfbuild.apply()
    assert tiny.state() == before


def test_another_release_goes_on_and_the_chain_says_so(tiny: Tiny, odfbuild: Program) -> None:
    tiny.arrive(2)
    said = odfbuild.ok("plan")
    assert f"because {OLD} computed it until now, {NEW} continues" in said.out
    odfbuild.apply()
    assert releases(tiny) == [OLD, NEW]
    assert "No changes" in odfbuild.ok("plan").out
    odfbuild.ok("verify")


def test_a_release_that_computes_alike_stands_in_for_the_old_one(
    tiny: Tiny, odfbuild: Program
) -> None:
    said = odfbuild.ok("engine", "deprecate")
    assert said.out == f"  derived: {NEW} stands in for {OLD}, as block #4 says\n"
    assert releases(tiny) == [OLD, NEW]
    assert "No changes" in odfbuild.ok("plan").out
    said = odfbuild.ok("engine", "deprecate", "--json")
    assert said.data["datasets"] == [
        {"name": "derived", "releases": [OLD], "release": NEW, "reproduced": True, "block": None}
    ]


def test_a_release_that_computes_otherwise_is_not_recorded(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(Other(), monkeypatch)
    said = odfbuild("engine", "deprecate")
    assert said.code == EXIT_MISMATCH
    assert f"(computed by release {OLD}, recomputed by {NEW})" in said.out
    assert f"! derived: {NEW} does not stand in for {OLD}" in said.out
    assert releases(tiny) == [OLD]


def test_without_older_releases_there_is_nothing_to_do(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(OLD, monkeypatch, PlainEngine())
    said = odfbuild.ok("engine", "deprecate")
    assert said.out == f"Nothing was computed by another release than {OLD}.\n"


def test_a_definition_may_ask_for_the_installed_release_only(tiny: Tiny, odfbuild: Program) -> None:
    file = tiny.root / "datasets" / "derived.yaml"
    plain = file.read_text()
    file.write_text(plain.replace("engine: spark", "engine: spark\n        version: 4.3.0"))
    said = odfbuild("apply", "-y")
    assert "error[E0317]: 'derived' asks for version 4.3.0 of its engine" in said.err
    assert releases(tiny) == [OLD]
    file.write_text(plain.replace("engine: spark", "engine: spark\n        version: 4.4.0"))
    odfbuild.apply()
    assert releases(tiny) == [OLD, NEW]


def test_what_another_engine_computed_so_far_is_pinned_to_spark_from_here_on() -> None:
    query = SqlQueryStep(query="SELECT a FROM t")
    foreign = SetTransform(inputs=(), transform=TransformSql(engine="flink", queries=(query,)))
    for recorded in (None, "0.18.2", f"spark-{OLD}-00000000"):
        event = replace(foreign, transform=replace(foreign.transform, version=recorded))
        made = by_another_engine(event, NEW)
        assert made is not None
        assert (made.transform.engine, made.transform.queries) == ("flink", (query,))
        assert (made.transform.version or "").startswith(f"spark-{NEW}-")
        assert by_another_engine(made, NEW) is None
    # What cannot be translated is refused elsewhere.
    other = replace(foreign.transform, queries=(SqlQueryStep(query="SELECT FLOOR(a) AS c FROM t"),))
    assert by_another_engine(replace(foreign, transform=other), NEW) is None
