"""Whatever is wrong with one dataset among ten, at any stage, the other nine are brought up.

The program in this process, on an engine without a JVM that can be told to fail.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.engine.contract import EngineResult, IngestTask, TransformResult, TransformTask
from odfbuild.errors import OdfbuildError, QueryError
from odfbuild.plan import decide
from odfbuild.plan.changes.diff import diff
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

OTHERS = ("root", "derived", *(f"other{n}" for n in range(7)))
LATER = "event_time,id,value\n2024-03-01 00:00:00,9,9\n"


class Failing(PlainEngine):
    """Fails with the dataset that is called victim."""

    error: Exception | None = None

    def transform(self, task: TransformTask) -> TransformResult:
        self._fail(task.dataset)
        return super().transform(task)

    def ingest(self, task: IngestTask) -> EngineResult:
        self._fail(task.dataset)
        return super().ingest(task)

    def _fail(self, dataset: str) -> None:
        if dataset == "victim" and self.error is not None:
            raise self.error


@dataclass(frozen=True)
class World:
    """Ten datasets, all built once; then a new file for each root."""

    tiny: Tiny
    program: Program
    engine: Failing
    patch: pytest.MonkeyPatch

    @property
    def file(self) -> Path:
        return self.tiny.root / "datasets/victim.yaml"

    @property
    def chain(self) -> Path:
        return self.tiny.root / "chains/victim"

    def arrive(self) -> None:
        """Give every dataset something to do."""
        for folder in ("data", "data/victim"):
            (self.tiny.root / folder / "9.csv").write_text(LATER)

    def swap(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))

    def heads(self) -> dict[str, str]:
        return {
            name: (self.tiny.root / "chains" / name / "refs/head").read_text() for name in OTHERS
        }

    def forget(self) -> None:
        """Drop all caches: chains and definitions are read anew."""
        shutil.rmtree(self.tiny.root / ".odfbuild")


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    monkeypatch.setenv("NO_COLOR", "1")
    tiny = Tiny.fresh(tmp_path / "project")
    for number in range(7):
        tiny.derive(f"other{number}", QUERY, "root" if number % 2 else "derived")
    root = (tiny.root / "datasets/root.yaml").read_text()
    root = root.replace("name: root", "name: victim").replace("data/*.csv", "data/victim/*.csv")
    (tiny.root / "datasets/victim.yaml").write_text(root)
    (tiny.root / "data/victim").mkdir()
    shutil.copy(tiny.root / "data/1.csv", tiny.root / "data/victim/1.csv")
    engine = Failing()
    share(engine, monkeypatch)
    program = Program(tiny.root, monkeypatch, capsys)
    program.apply()
    made = World(tiny, program, engine, monkeypatch)
    made.arrive()
    yield made


def _unreadable_definition(world: World) -> None:
    world.swap("kind: Root", "kind: [Root")


def _binary_definition(world: World) -> None:
    world.file.write_bytes(b"\xff\xfe")


def _unknown_type(world: World) -> None:
    world.swap("value BIGINT", "value BIGNIT")


def _doubled_column(world: World) -> None:
    world.swap("value BIGINT", "ID BIGINT")


def _unknown_precision(world: World) -> None:
    world.swap("event_time TIMESTAMP", "event_time TIMESTAMP(4)")


def _link_that_leads_out(world: World) -> None:
    outside = world.tiny.root.parent / "outside.yaml"
    world.file.rename(outside)
    world.file.symlink_to(outside)


def _broken_template(world: World) -> None:
    world.file.rename(world.file.with_suffix(".yaml.j2"))
    (world.tiny.root / "datasets/victim.yaml.j2").write_text("name: {{ nothing }}")


def _defined_twice(world: World) -> None:
    shutil.copy(world.file, world.file.with_name("again.yaml"))


def _unknown_input(world: World) -> None:
    world.tiny.derive("victim", QUERY, "nobody")


def _own_input(world: World) -> None:
    world.tiny.derive("victim", QUERY, "victim")


def _other_kind(world: World) -> None:
    world.tiny.derive("victim", QUERY)


def _breaking_change(world: World) -> None:
    world.swap("primaryKey: [id]", "primaryKey: [value]")


def _planning_fails(world: World) -> None:
    original = diff

    def failing(snapshot: object, *rest: object) -> object:
        if str(snapshot.name) == "victim":  # type: ignore[attr-defined]
            raise RuntimeError("a defect of ours")
        return original(snapshot, *rest)  # type: ignore[arg-type]

    world.patch.setattr(decide, "diff", failing)
    world.swap("order: ByName", "order: ByEventTime")


def _no_source(world: World) -> None:
    head, _, tail = world.file.read_text().partition("      fetch:")
    tail = tail[tail.index("      read:") :]
    world.file.write_text(f"{head}      fetch: {{kind: Url, url: file:nowhere.csv}}\n{tail}")


def _bad_record(world: World) -> None:
    world.engine.error = QueryError("a record that cannot be read", code="E0421")


def _engine_fails(world: World) -> None:
    world.engine.error = RuntimeError("a defect of ours")


def _broken_check(world: World) -> None:
    with (world.tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  checks:\n    - match: [victim]\n      acceptedValues: {id: [1, 2, 3]}\n")


def _nowhere_to_write(world: World) -> None:
    shutil.rmtree(world.chain / "data")
    (world.chain / "data").write_text("no folder")


def _head_is_garbage(world: World) -> None:
    (world.chain / "refs/head").write_text("garbage")
    world.forget()


def _head_leads_nowhere(world: World) -> None:
    (world.chain / "refs/head").write_text("f1620" + "0" * 64)
    world.forget()


def _block_is_missing(world: World) -> None:
    sorted((world.chain / "blocks").iterdir())[0].unlink()
    world.forget()


def _blocks_are_garbage(world: World) -> None:
    for block in (world.chain / "blocks").iterdir():
        block.write_bytes(b"no block")
    world.forget()


def _twin_but_for_case(world: World) -> None:
    shutil.copytree(world.chain, world.chain.with_name("Victim"))


STAGES: dict[str, Callable[[World], None]] = {
    name.removeprefix("_"): value
    for name, value in list(globals().items())
    if name.startswith("_") and callable(value) and value.__module__ == __name__
}


@pytest.mark.parametrize("stage", STAGES)
def test_nine_of_ten_are_shown_checked_and_committed_when_one_cannot_be(
    stage: str, world: World
) -> None:
    STAGES[stage](world)
    planned = json.loads(world.program("plan", "--json").out)
    runs = {each["name"] for each in planned["datasets"] if "run" in str(each["actions"])}
    assert runs >= set(OTHERS)
    listed = json.loads(world.program("ls", "--json").out)
    assert {each["name"]: each["status"] for each in listed}["other3"] == "stale"
    grouped = json.loads(world.program.ok("status", "--json").out)["groups"]
    assert set(OTHERS) <= set(grouped["stale"])
    assert "root" in world.program.ok("explain", "other3").out
    linted = json.loads(world.program("lint", "--json").out)
    assert set(OTHERS) <= set(linted["datasets"])
    page = world.program("docs", "build", "--single-page", "-o", "-").out
    assert all(f">{name}<" in page for name in OTHERS)
    checked = json.loads(world.program("verify", "--json").out)
    assert {each["dataset"].lower() for each in checked["findings"]} <= {"victim"}
    drifted = json.loads(world.program("drift", "--json").out)
    assert set(OTHERS) <= set(drifted["datasets"])
    assert {each["dataset"].lower() for each in drifted["drift"]} <= {"victim"}
    drawn = json.loads(world.program("graph", "--json").out)
    assert set(OTHERS) <= {each["name"] for each in drawn}
    rendered = json.loads(world.program("render", "--json").out)
    assert set(OTHERS) <= {each["content"]["name"] for each in rendered}
    different = json.loads(world.program("diff", "--json").out)
    assert {each["name"] for each in different["datasets"]} <= {"victim"}
    before = world.heads()
    said = world.program("apply", "-y")
    assert said.code != 0
    assert "error[E0" in said.err
    assert "Traceback" not in said.err
    after = world.heads()
    assert {name for name in OTHERS if before[name] != after[name]} == set(OTHERS)


@pytest.mark.parametrize(
    "stage",
    [
        "unknown_type",
        "broken_template",
        "link_that_leads_out",
        "own_input",
        "planning_fails",
        "head_is_garbage",
        "twin_but_for_case",
    ],
)
def test_what_is_not_about_the_one_ends_well(stage: str, world: World) -> None:
    STAGES[stage](world)
    others = [argument for name in OTHERS for argument in ("-s", name)]
    world.program.ok("plan", *others)
    world.program.ok("apply", "-y", *others)
    world.program.ok("verify", *OTHERS)
    for verb in ("lint", "drift", "graph", "render", "diff"):
        world.program.ok(verb, *others)


WRONG_DEFINITIONS = ["unreadable_definition", "unknown_type", "link_that_leads_out", "own_input"]


@pytest.mark.parametrize("stage", WRONG_DEFINITIONS)
def test_what_looks_at_definitions_tells_what_is_wrong_with_one_and_fails(
    stage: str, world: World
) -> None:
    STAGES[stage](world)
    for verb in ("lint", "drift", "graph", "render", "diff"):
        said = world.program(verb)
        assert said.code == 1
        assert said.err.count("error[E0") == 1, (verb, said.err)
        assert "datasets/victim.yaml" in said.err
        assert "Traceback" not in said.err


def test_a_chain_that_any_file_may_define_is_neither_drift_nor_gone(world: World) -> None:
    world.file.write_bytes(b"\xff\xfe")
    assert world.program("drift", "--json").data["drift"] == []
    assert world.program("diff", "--json").data["datasets"] == []


def test_python_gets_what_is_wrong_with_one_definition_among_the_findings(world: World) -> None:
    _unknown_type(world)
    world.swap("order: ByName", "order: ByNaem")
    project = Project(world.tiny.root)
    (found,) = (each for each in project.lint() if each.dataset == "victim")
    assert (found.level, found.rule.code[:2]) == ("error", "E0")
    assert str(found.place).startswith("datasets/victim.yaml:")
    (fault,) = project.drift().faults
    assert fault.dataset == "victim"
    with pytest.raises(OdfbuildError) as raised:
        project.diff()
    assert raised.value.dataset == "victim"


def test_revisions_are_compared_but_for_what_is_wrong_in_one_of_them(world: World) -> None:
    git = partial(subprocess.run, cwd=world.tiny.root, check=True, capture_output=True)
    for command in ("init", "add -A", "commit -q -m all"):
        git(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command.split()])
    world.tiny.derive("other1", QUERY.replace("10", "20"))
    _unknown_type(world)
    compared = world.program("diff", "HEAD", "--json")
    assert compared.code == 1
    assert "error[E0160]" in compared.err
    assert [each["name"] for each in compared.data["datasets"]] == ["other1"]
    world.program.ok("diff", "HEAD", "other1")
    assert json.loads(world.program("plan", "-s", "git:HEAD", "--json").out)["datasets"][0]
    for command in ("add -A", "commit -q -m wrong"):
        git(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command.split()])
    world.swap("value BIGNIT", "value BIGINT")
    world.tiny.derive("other1", QUERY)
    compared = world.program("diff", "HEAD", "--json")
    assert "error[E0342]: the definitions at the revision 'HEAD' are wrong" in compared.err
    assert [each["name"] for each in compared.data["datasets"]] == ["other1"]


def test_readers_of_a_chain_without_definition_that_is_there_twice_wait(world: World) -> None:
    world.tiny.derive("reader", QUERY, "victim")
    world.program.apply()
    world.file.unlink()
    _twin_but_for_case(world)
    said = world.program("plan")
    assert "error[E0620]" in said.out + said.err
    assert "'reader' cannot be planned: its input 'victim' is refused" in said.out + said.err
    for verb in ("log", "tail", "import"):
        assert "error[E0620]" in world.program(verb, "victim").err
    (found,) = (
        e
        for e in world.program("verify", "--json").data["findings"]
        if e["dataset"] == "victim" and e["code"] == "E0620"
    )
    assert "case does not count" in found["message"]


def test_readers_of_a_chain_that_cannot_be_read_wait_and_go_on_when_it_is_back(
    world: World,
) -> None:
    world.tiny.derive("reader", QUERY, "victim")
    world.program.apply()
    for folder in ("data", "data/victim"):
        (world.tiny.root / folder / "99.csv").write_text(LATER.replace("9,9", "10,10"))
    head = (world.chain / "refs/head").read_text()
    _head_is_garbage(world)
    said = world.program("apply", "-y")
    assert "error[E0805]" in said.err
    assert "error[E0308]: 'reader' cannot be planned: its input 'victim' is refused" in said.err
    assert world.tiny.ids("derived") == [1, 2, 3, 9, 10]
    (world.chain / "refs/head").write_text(head)
    world.program.apply()
    assert world.tiny.ids("reader") == [1, 2, 3, 9, 10]


def test_a_step_that_cannot_be_done_again_is_a_finding_beside_the_steps_that_can(
    world: World,
) -> None:
    world.file.unlink()
    shutil.rmtree(world.chain)
    world.tiny.derive("victim", QUERY)
    world.program.apply()
    world.engine.error = RuntimeError("a defect of ours")
    checked = world.program("verify", "--json")
    assert checked.code == 3
    (finding,) = checked.data["findings"]
    assert (finding["dataset"], finding["code"]) == ("victim", "E0999")
    assert finding["block"] is not None


def test_nothing_is_deleted_while_a_file_may_define_it(world: World) -> None:
    world.file.unlink()
    (world.tiny.root / "datasets/more.yaml").write_text("kind: [")
    refused = world.program("apply", "-y", "--allow", "delete:victim")
    assert refused.code == 1
    assert "error[E0101]" in refused.err
    assert world.chain.exists()
