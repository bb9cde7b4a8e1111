"""`from odfbuild import Project`: what the commands do, as methods."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from odfbuild import Project
from odfbuild.api.logged import Logged
from odfbuild.engine.settings import FileAccess
from odfbuild.errors import Errors, OdfbuildError, PlanError, ProjectError, StaleHeadError
from odfbuild.plan.explain import DatasetStatus
from odfbuild.plan.model import Action, ReasonCode
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import git

LATER = datetime(2030, 1, 1, tzinfo=UTC)
_ROW = b"event_time,id,value\n2024-01-01 00:00:00,1,"
_PUSHED = """\
kind: DatasetSnapshot
version: 1
content:
  name: pushed
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: till
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]
      merge:
        kind: Ledger
        primaryKey: [id]
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    share(PlainEngine(), monkeypatch)
    return Tiny.fresh(tmp_path / "p")


@pytest.fixture
def project(tiny: Tiny) -> Project:
    return Project(tiny.root)


def test_a_plan_is_made_applied_and_then_empty(project: Project, tiny: Tiny) -> None:
    plan = project.plan()
    assert plan.has_changes
    assert {each.name: each.actions[0] for each in plan.datasets} == {
        "root": Action.CREATE,
        "derived": Action.CREATE,
    }
    outcome = project.apply(plan)
    assert outcome.exit_code == 0
    assert [each.status for each in outcome.datasets] == [Status.COMMITTED] * 2
    assert not project.plan().has_changes
    assert tiny.ids("derived") == [1, 2, 3]
    assert project.apply().datasets == ()


def test_exactly_the_plan_is_applied(project: Project, tiny: Tiny) -> None:
    plan = project.plan(select=["root"])
    tiny.derive("derived", QUERY.replace("10", "99"))
    assert [each.name for each in project.apply(plan).datasets] == ["root"]
    again = project.apply(plan)
    assert (again.exit_code, again.datasets[0].status) == (5, Status.LOST)
    assert isinstance(again.datasets[0].error, StaleHeadError)


def test_a_plan_is_saved_and_loaded(project: Project, tmp_path: Path) -> None:
    plan = project.plan()
    digest = project.save_plan(plan, tmp_path / "plan.json")
    loaded = project.load_plan(tmp_path / "plan.json")
    assert project.save_plan(loaded, tmp_path / "again.json") == digest
    assert digest.startswith("sha256:")


def test_state_blocks_and_records_can_be_read(project: Project) -> None:
    project.apply()
    assert set(project.definitions()) == {"root", "derived"}
    state = project.datasets()["derived"]
    assert state.records == 3
    assert list(project.datasets(select=["root+"], exclude=["root"])) == ["derived"]
    kinds = [block.event.KIND for _, block in project.log("derived")]
    assert kinds == ["ExecuteTransform", "SetDataSchema", "SetTransform", "Seed"]
    table = project.records("derived", last=2)
    assert table is not None
    assert table["value"].to_pylist() == [20, 30]
    everything = project.records("DERIVED")
    assert everything is not None
    assert everything.num_rows == 3


def test_explain_and_diff_say_why(project: Project, tiny: Tiny) -> None:
    project.apply()
    tiny.derive("derived", QUERY.replace("10", "20"))
    (change,) = project.diff()
    assert change.name == "derived"
    assert [cause.reason.code for cause in project.explain("Derived").causes] == [
        ReasonCode.TRANSFORM_CHANGED
    ]
    assert project.explain("root").status is DatasetStatus.UP_TO_DATE


def test_records_of_two_states_are_compared(project: Project, tiny: Tiny) -> None:
    pytest.importorskip("duckdb", reason="the quick tests do without DuckDB")
    project.apply()
    moment = datetime.now(UTC)
    tiny.derive("derived", QUERY.replace("10", "11"))
    (found,) = project.diff_data(key=["id"]).diffs
    assert (found.dataset, found.changed, found.new) == ("derived", 3, "changed query")
    tiny.arrive(2)
    project.apply()
    compared = project.diff_data(["root"], since=moment)
    assert [(each.dataset, each.added) for each in compared.diffs] == [("root", 1)]
    with pytest.raises(ValueError, match="`until` needs `since`"):
        project.diff_data(until=moment)
    branch = Project(tiny.root, branch="pr-1")
    tiny.derive("derived", QUERY)
    branch.apply(branch.plan(rebuild=["derived"]))
    (found,) = branch.diff_data().diffs
    assert (found.old, found.new) == ("head", "pr-1")


def test_watermarks_move_forward_only(project: Project) -> None:
    project.apply()
    assert project.set_watermark("root", LATER) is True
    assert project.set_watermark("root", LATER) is False
    with pytest.raises(PlanError, match="cannot go back"):
        project.set_watermark("root", datetime(2025, 1, 1, tzinfo=UTC))
    with pytest.raises(ValueError, match="time zone"):
        project.set_watermark("root", datetime(2031, 1, 1))


def test_verify_returns_what_is_wrong(project: Project, tiny: Tiny) -> None:
    project.apply()
    verdict = project.verify("derived", recursive=True)
    assert verdict.findings == ()
    assert [(each.dataset, each.statement) for each in verdict.signatures] == [
        ("derived", None),
        ("root", None),
    ]
    store = tiny.workspace().dataset("root")
    (piece,) = (store.path / "data").iterdir()
    piece.write_bytes(piece.read_bytes()[:-1] + b"x")
    (finding,) = project.verify(integrity=True).findings
    assert finding.dataset == "root"


def test_pushing_to_a_dataset_without_push_source_is_refused(project: Project) -> None:
    project.apply()
    outcome = project.ingest("root", io.BytesIO(b"{}"))
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.code == "E0320"


def test_what_a_person_did_wrong_is_raised_with_its_place(
    project: Project, tiny: Tiny, tmp_path: Path
) -> None:
    with pytest.raises(ProjectError, match=r"no odfbuild\.yaml"):
        Project(tmp_path)
    with pytest.raises(PlanError, match="there is no chain of 'rot'"):
        project.records("rot")
    for name in ("root", "derived"):
        (tiny.root / "datasets" / f"{name}.yaml").write_text("kind: [")
    with pytest.raises(Errors) as caught:
        project.definitions()
    assert not project.plan().applyable
    assert [str(e.location)[:8] for e in caught.value.errors] == ["datasets"] * 2
    assert str(caught.value).startswith(
        "2 errors:\nE0101 datasets/derived.yaml:1:7: this is not YAML"
    )


def test_a_project_tells_how_it_stands(project: Project, tiny: Tiny) -> None:
    assert project.graph().order == ("root", "derived")
    assert project.status().groups == {"new": ("derived", "root")}
    project.apply()
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  freshness:\n    - {match: [root], maxAge: 1d}\n")
    ages = {each.name: each.status for each in project.freshness(LATER)}
    assert ages["root"] == "stale"
    ages = {each.name: each.status for each in project.freshness(datetime(2024, 1, 3, tzinfo=UTC))}
    assert ages["root"] == "fresh"


def test_committed_records_are_held_against_checks(project: Project, tiny: Tiny) -> None:
    project.apply()
    assert project.test() == {}
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  checks:\n    - {match: [derived], acceptedValues: {value: [10, 20]}}\n")
    (violation,) = project.test()["derived"]
    assert (violation.count, violation.warn) == (1, False)


def test_what_the_last_apply_protects_stays_protected(project: Project, tiny: Tiny) -> None:
    config = tiny.root / "odfbuild.yaml"
    before = config.read_text()
    config.write_text(before + "  policies:\n    - {match: [root], rebuild: refuse}\n")
    project.apply()
    config.write_text(before)
    with pytest.raises(PlanError) as caught:
        project.reset("root")
    assert caught.value.code == "E0339"
    project.apply()
    assert [each.name for each in project.reset("root", readers=True)] == ["derived", "root"]


def test_pushed_records_are_held_against_checks(project: Project, tiny: Tiny) -> None:
    (tiny.root / "datasets" / "pushed.yaml").write_text(_PUSHED)
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  checks:\n    - {match: [pushed], acceptedValues: {value: [1, 2]}}\n")
    project.apply()
    outcome = project.ingest("pushed", io.BytesIO(_ROW + b"3\n"))
    assert (outcome.status, outcome.records) == (Status.FAILED, 0)
    assert outcome.error is not None
    assert outcome.error.code == "E0540"
    outcome = project.ingest("pushed", io.BytesIO(_ROW + b"2\n"))
    assert (outcome.status, outcome.records) == (Status.COMMITTED, 1)


def test_a_dataset_goes_back_and_what_is_left_over_is_collected(
    project: Project, tiny: Tiny
) -> None:
    project.apply()
    before = project.datasets()["root"].head
    tiny.arrive(2)
    project.apply()
    moved = project.reset("root", str(before), readers=True)
    assert [each.name for each in moved] == ["derived", "root"]
    assert project.datasets()["root"].head == before
    found = project.collect(grace=timedelta(0), dry_run=True)
    assert {each.dataset for each in found.garbage} >= {"root", "derived"}
    assert project.collect(grace=timedelta(0)).size == found.size
    assert project.collect(grace=timedelta(0)).garbage == ()
    project.apply()
    assert project.verify(integrity=True).findings == ()


def test_chains_are_committed_to_git(project: Project, tiny: Tiny) -> None:
    git(tiny.root, "init", "-q")
    project.apply()
    assert [each.name for each in project.commit_chains()] == ["derived", "root"]
    assert project.commit_chains() == ()
    assert {each.commit.subject for each in project.blame("root") if each.commit} == {
        "Bring 2 datasets up to date"
    }


def test_an_environment_and_variables_are_those_of_the_project(tiny: Tiny) -> None:
    (tiny.root / "vars").mkdir()
    (tiny.root / "vars" / "dev.yaml").write_text("factor: 7\n")
    text = (tiny.root / "datasets" / "derived.yaml").read_text()
    (tiny.root / "datasets" / "derived.yaml").unlink()
    (tiny.root / "datasets" / "derived.yaml.j2").write_text(
        text.replace("value * 10", "value * {{ factor }}")
    )
    dev = Project(tiny.root, env="dev")
    dev.apply()
    table = dev.records("derived")
    assert table is not None
    assert table["value"].to_pylist() == [7, 14, 21]
    # Its chains are its own.
    other = Project(tiny.root, env="dev", variables={"factor": "8"})
    assert {each.name for each in other.plan().datasets if each.actions} == {"derived"}


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, odfbuild; print([m for m in sys.modules if m.startswith('odfbuild.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_definition_is_begun_and_formatted(project: Project, tiny: Tiny) -> None:
    begun = project.new("files", "second", ["data/*.csv"], key=["id"], merge="ledger", write=False)
    assert (begun.file, begun.names) == ("datasets/second.yaml", ("second",))
    assert "primaryKey:" in begun.text
    assert "second" not in project.definitions()
    project.new("files", "second", ["data/*.csv"], key=["id"], merge="ledger")
    assert (tiny.root / begun.file).read_text() == begun.text
    assert "second" in project.definitions()
    with pytest.raises(ProjectError) as caught:
        project.new("fils", "third")
    assert caught.value.code == "E0140"

    file = tiny.root / begun.file
    file.write_text(begun.text.replace("version: 1", "version:   1"))
    assert [each.file for each in project.fmt(file, write=False) if each.is_changed] == [str(file)]
    assert file.read_text() != begun.text
    assert sum(each.is_changed for each in project.fmt()) >= 1
    assert file.read_text() == begun.text
    (tiny.root / "datasets" / "bad.yaml").write_text("kind: [")
    with pytest.raises(ProjectError) as caught:
        project.fmt()
    assert caught.value.code == "E0101"


@pytest.fixture
def started(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    """Engines, as they are started."""
    from odfbuild.engine.spark import start as module

    found: list[Counted] = []

    def start(_: object, reach: FileAccess) -> Counted:
        for each in (*reach.read, *reach.write):
            if not each.exists():
                each.mkdir(parents=True)
        found.append(Counted())
        return found[-1]

    monkeypatch.setattr(module, "start_engine", start)
    return found


class Counted(PlainEngine):
    """An engine that knows whether it runs."""

    runs = True

    def stop(self) -> None:
        self.runs = False


def test_a_project_keeps_one_engine_until_it_is_closed(tiny: Tiny, started: list[Counted]) -> None:
    with Project(tiny.root) as project:
        project.apply()
        tiny.arrive(2)
        project.apply()
        assert project.verify().findings == ()
        assert [each.runs for each in started] == [True]
    assert [each.runs for each in started] == [False]
    assert project.verify().findings == ()
    assert [each.runs for each in started] == [False, True]
    project.close()
    project.close()
    assert [each.runs for each in started] == [False, False]


def test_an_engine_that_does_not_suit_any_more_is_ended(
    tiny: Tiny, started: list[Counted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Project(tiny.root) as project:

        def running() -> list[bool]:
            project.verify()
            return [each.runs for each in started]

        project.apply()
        assert running() == [True]
        # Settings of the engine, its fences, another project.
        monkeypatch.setenv("ODFBUILD_SPARK_MEMORY", "512m")
        assert running() == [False, True]
        shutil.rmtree(tiny.root / ".odfbuild")
        assert running() == [False, False, True]
        with Project(Tiny.fresh(tmp_path / "q").root) as other:
            other.apply()
            assert [each.runs for each in started][2:] == [False, True]
        assert running() == [False, False, False, False, True]


def test_calls_of_several_threads_share_an_engine(tiny: Tiny, started: list[Counted]) -> None:
    with Project(tiny.root) as project:
        project.apply()
        threads = [Thread(target=project.verify) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [each.runs for each in started] == [True]


class Curious(Logged):
    """A listener that asks while it hears."""

    def __init__(self, *asked: Callable[[], object]) -> None:
        self.asked = asked
        self.errors: list[str] = []

    def finished(self, outcome: DatasetOutcome) -> None:
        for each in self.asked:
            try:
                each()
            except OdfbuildError as error:
                self.errors.append(error.code)


def test_a_listener_that_could_only_wait_for_ever_is_told_so(
    tiny: Tiny, started: list[Counted], tmp_path: Path
) -> None:
    other = Project(Tiny.fresh(tmp_path / "q").root)
    outcomes: list[ApplyOutcome] = []
    with Project(tiny.root) as project:
        listener = Curious(
            project.verify, lambda: outcomes.append(other.apply()), project.close, other.close
        )
        working = Thread(target=lambda: project.apply(listener=listener), daemon=True)
        working.start()
        working.join(60)
        assert not working.is_alive()
        # Its own project can be asked; another one cannot, and nor can Spark be ended.
        assert listener.errors == ["E0624", "E0624"]
        told = {error.code for outcome in outcomes for error in outcome.errors}
        assert (len(outcomes), told) == (2, {"E0624"})
        assert [each.runs for each in started] == [True]
        assert other.apply().errors == []
        assert [each.runs for each in started] == [False, True]
    other.close()
