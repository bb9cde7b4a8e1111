"""A command and the method of `Project` that belongs to it find the same, whatever was damaged."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odfbuild import Project
from odfbuild.cli.verbs import VERBS
from odfbuild.errors import OdfbuildError
from odfbuild.odf.records import records_to_data
from odfbuild.report.blame import blame_to_data
from odfbuild.report.branches import branch_to_data
from odfbuild.report.chain import log_to_data
from odfbuild.report.explanation import explanation_to_data
from odfbuild.report.findings.drift import drift_to_data
from odfbuild.report.findings.lint import findings_to_data
from odfbuild.report.findings.verification import verdict_to_data
from odfbuild.report.freshness import ages_to_data
from odfbuild.report.garbage import collection_to_data
from odfbuild.report.keys import keys_to_data
from odfbuild.report.records.corrections import corrections_to_data
from odfbuild.report.records.vintage import vintage_to_data
from odfbuild.report.sources import slots_to_data
from odfbuild.report.status import status_to_data
from odfbuild.report.storage import held_to_data
from odfbuild.report.tables import collected_to_data, facts_to_data
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

MOMENT = "2030-01-01T00:00:00Z"
MISMATCH = 3


class Pair(NamedTuple):
    """A command with `--json`, and the method: its result as JSON, and the exit code it means."""

    command: tuple[str, ...]
    method: Callable[[Project], tuple[Any, int]]
    compared: Callable[[Any], Any] = lambda data: data


def _everything(data: Any) -> Any:
    """Codes of warnings, and of errors, which stand beside them in the output of the command."""
    return sorted(each["code"] for each in [*data["findings"], *data.get("errors", [])])


def _of(key: str) -> Callable[[Any], Any]:
    return lambda data: data[key]


def _status(project: Project) -> tuple[Any, int]:
    return status_to_data(project.status()), 0


def _freshness(project: Project) -> tuple[Any, int]:
    ages = project.freshness(MOMENT)
    bad = any(each.status in ("stale", "damaged") for each in ages)
    return ages_to_data(ages), MISMATCH if bad else 0


def _log(project: Project) -> tuple[Any, int]:
    return log_to_data(tuple(project.log("derived"))), 0


def _blame(project: Project) -> tuple[Any, int]:
    return blame_to_data(project.blame("derived")), 0


def _explain(project: Project) -> tuple[Any, int]:
    return explanation_to_data(project.explain("derived")), 0


def _tail(project: Project) -> tuple[Any, int]:
    table = project.records("derived", last=10)
    return records_to_data(table, "op") if table is not None else [], 0


def _lint(project: Project) -> tuple[Any, int]:
    found = project.lint()
    return sorted(each["code"] for each in findings_to_data(found)), int(
        any(each.level == "error" for each in found)
    )


def _drift(project: Project) -> tuple[Any, int]:
    found = project.drift()
    return drift_to_data(found)["drift"], int(bool(found.faults))


def _deep_drift(project: Project) -> tuple[Any, int]:
    found = project.drift(deep=True)
    return drift_to_data(found)["drift"], int(bool(found.faults))


def _diff(project: Project) -> tuple[Any, int]:
    changes = project.diff()
    return [each.name for each in changes], 0


def _integrity(project: Project) -> tuple[Any, int]:
    verdict = project.verify(integrity=True)
    names = project.workspace().aliases()
    return verdict_to_data(names, verdict), MISMATCH if verdict.findings else 0


def _verify_one(project: Project) -> tuple[Any, int]:
    verdict = project.verify("derived", integrity=True, recursive=True)
    names = ["derived", "root"]
    return sorted(verdict_to_data(names, verdict)["datasets"]), MISMATCH if verdict.findings else 0


def _test(project: Project) -> tuple[Any, int]:
    found = project.test()
    failed = any(not each.warn for violations in found.values() for each in violations)
    return {name: len(each) for name, each in found.items()}, MISMATCH if failed else 0


def _branches(project: Project) -> tuple[Any, int]:
    return [branch_to_data(each) for each in project.branches()], 0


def _keys(project: Project) -> tuple[Any, int]:
    return keys_to_data(project.private_keys()), 0


def _objects(project: Project) -> tuple[Any, int]:
    found = project.objects()
    return held_to_data(found), int(any(each.is_lost for each in found))


def _plan(project: Project) -> tuple[Any, int]:
    made = project.plan()
    code = 0 if made.applyable else max(each.exit_code for each in made.refusals)
    return sorted(each.name for each in made.datasets), code


def _names(project: Project) -> tuple[Any, int]:
    return sorted(project.datasets()), 0


def _tables(project: Project) -> tuple[Any, int]:
    return [facts_to_data(each) for each in project.tables().values()], 0


def _garbage(project: Project) -> tuple[Any, int]:
    found = project.collect(dry_run=True)
    assert found.tables is not None
    data = collection_to_data(found, removed=False)
    code = max((each.exit_code for each in found.errors), default=0)
    return {**data, "tables": collected_to_data(found.tables)}, code


def _vintage(project: Project) -> tuple[Any, int]:
    return vintage_to_data(project.vintage("derived"), ())["datasets"], 0


def _graph(project: Project) -> tuple[Any, int]:
    return sorted(project.graph().order), 0


def _definitions(project: Project) -> tuple[Any, int]:
    return sorted(project.definitions()), 0


def _formatted(project: Project) -> tuple[Any, int]:
    found = project.fmt(write=False)
    return len(found), int(any(each.is_changed for each in found))


def _corrections(project: Project) -> tuple[Any, int]:
    return corrections_to_data(project.corrections("derived", "2020-01-01"), "day"), 0


def _slots(project: Project) -> tuple[Any, int]:
    return slots_to_data(project.source_status()), 0


def _manifests(data: Any) -> Any:
    return sorted(each["content"]["name"] for each in data)


def _listed(key: str) -> Callable[[Any], Any]:
    return lambda data: sorted(each[key] for each in data)


PAIRS = {
    "graph": Pair(("graph",), _graph, _listed("name")),
    "validate": Pair(("validate",), _definitions, lambda data: sorted(data["datasets"])),
    "render": Pair(("render",), _definitions, _manifests),
    "fmt": Pair(("fmt", "--check"), _formatted, len),
    "corrections": Pair(("corrections", "derived", "--since", "2020-01-01"), _corrections),
    "source": Pair(("source", "status"), _slots),
    "status": Pair(("status",), _status),
    "freshness": Pair(("freshness", "--at", MOMENT), _freshness),
    "log": Pair(("log", "derived"), _log),
    "blame": Pair(("blame", "derived"), _blame),
    "explain": Pair(("explain", "derived"), _explain),
    "tail": Pair(("tail", "derived"), _tail),
    "lint": Pair(("lint",), _lint, _everything),
    "drift": Pair(("drift",), _drift, _of("drift")),
    "drift --deep": Pair(("drift", "--deep"), _deep_drift, _of("drift")),
    "diff": Pair(("diff",), _diff, lambda data: [each["name"] for each in data["datasets"]]),
    "verify": Pair(("verify", "--integrity"), _integrity),
    "test": Pair(
        ("test",), _test, lambda data: {d["name"]: len(d["violations"]) for d in data["datasets"]}
    ),
    "branch": Pair(("branch", "list"), _branches),
    "key": Pair(("key", "status"), _keys),
    "storage": Pair(("storage", "status"), _objects),
    "plan": Pair(("plan",), _plan, lambda data: sorted(each["name"] for each in data["datasets"])),
    "ls": Pair(("ls",), _names, lambda data: sorted(each["name"] for each in data)),
    "table": Pair(("table", "show"), _tables, _of("tables")),
    "gc": Pair(("gc", "--dry-run"), _garbage),
}


OTHERS = {
    "init": "there is no project yet",
    "new": "makes a file: tests/cli/editing",
    "import": "makes a file",
    "lsp": "answers an editor: tests/api/editor",
    "show": "shows a plan as it was saved",
    "apply": "changes what is compared here: tests/api/test_python_interface.py",
    "promote": "as apply",
    "ingest": "as apply",
    "watermark": "as apply",
    "reset": "as apply",
    "sql": "starts an engine: tests/cli/looking",
    "shell": "asks a person",
    "provenance": "starts an engine: tests/cli/looking",
    "decode": "is about one object",
    "convert": "is about one file",
    "schema": "is about the protocol",
    "pull": "asks another machine: tests/api/test_sharing.py",
    "push": "as pull",
    "serve": "answers others",
    "docs": "makes files",
    "passport": "makes files: tests/exchange/passport",
    "chains": "moves files: tests/cli/sharing/test_chains_in_storage.py",
    "erase": "destroys keys: tests/stewardship",
    "git": "sets a repository up",
    "ci": "writes one comment",
    "lock": "is about processes",
    "migrate": "makes files",
    "engine": "is about engines",
    "doctor": "is about the machine",
    "version": "is about the program",
}
"""Commands that are not compared, with the reason."""


def test_every_command_is_compared_with_a_method_or_says_why_not() -> None:
    compared = {pair.command[0] for pair in PAIRS.values()}
    assert compared | OTHERS.keys() == set(VERBS)
    assert not compared & OTHERS.keys()


def _sound(tiny: Tiny) -> None:
    """Nothing to do."""


def _stale(tiny: Tiny) -> None:
    tiny.arrive(2)


def _only(folder: Path) -> Path:
    (found,) = [each for each in folder.iterdir() if each.is_file()]
    return found


def _damaged_block(tiny: Tiny) -> None:
    head = (tiny.root / "chains" / "derived" / "refs" / "head").read_text().strip()
    block = tiny.root / "chains" / "derived" / "blocks" / head
    block.chmod(0o644)
    block.write_bytes(block.read_bytes()[:-9] + b"otherwise")


def _damaged_head(tiny: Tiny) -> None:
    (tiny.root / "chains" / "derived" / "refs" / "head").write_text("no hash")


def _lost_block(tiny: Tiny) -> None:
    head = (tiny.root / "chains" / "root" / "refs" / "head").read_text().strip()
    (tiny.root / "chains" / "root" / "blocks" / head).unlink()


def _damaged_slice(tiny: Tiny) -> None:
    slice_ = _only(tiny.root / "chains" / "derived" / "data")
    slice_.chmod(0o644)
    slice_.write_bytes(slice_.read_bytes()[:-9] + b"otherwise")


def _lost_slice(tiny: Tiny) -> None:
    _only(tiny.root / "chains" / "derived" / "data").unlink()


def _wrong_definition(tiny: Tiny) -> None:
    file = tiny.root / "datasets" / "derived.yaml"
    file.write_text(file.read_text().replace("kind: Derivative", "kind: Derivation"))


STATES = {
    each.__name__.strip("_").replace("_", " "): each
    for each in (
        _sound,
        _stale,
        _damaged_block,
        _damaged_head,
        _lost_block,
        _damaged_slice,
        _lost_slice,
        _wrong_definition,
    )
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiny]:
    """The project with two datasets, one published table and a check, applied."""
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        tiny = Tiny.fresh(tmp_path_factory.mktemp("alike") / "project")
        config = tiny.root / "odfbuild.yaml"
        config.write_text(
            config.read_text()
            + "  tables: [{match: [derived], format: parquet, location: lake}]\n"
            + "  checks:\n    - {match: ['*'], notNull: [id]}\n"
            + "  freshness:\n    - {match: ['*'], maxAge: 1d}\n"
        )
        with Project(tiny.root) as project:
            assert project.apply().exit_code == 0
        yield tiny


@pytest.mark.parametrize("state", STATES)
def test_a_command_and_its_method_find_the_same(
    state: str,
    built: Tiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(PlainEngine(), monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    tiny = Tiny(tmp_path / "project")
    shutil.copytree(built.root, tiny.root, symlinks=True)
    STATES[state](tiny)
    program = Program(tiny.root, monkeypatch, capsys)
    differences = []
    for verb, pair in PAIRS.items():
        said = program(*pair.command, "--json")
        told = json.loads(said.out) if said.out else None
        try:
            with Project(tiny.root) as project:
                found, code = pair.method(project)
        except OdfbuildError as error:
            codes = {each.code for each in error.apart()}
            of_command = set(re.findall(r"error\[(E\d{4})\]", said.err))
            if (error.exit_code, codes) != (said.code, of_command):
                differences.append(
                    f"{verb}: raises {sorted(codes)} ({error.exit_code}), the command ends with "
                    f"{said.code} {sorted(of_command)}: {said.err[:300]}"
                )
            continue
        except Exception as error:
            differences.append(f"{verb}: a traceback of {error!r}")
            continue
        if said.code != code:
            differences.append(
                f"{verb}: means {code}, the command ends with {said.code}: {said.err[:300]}"
            )
        elif told is None or pair.compared(told) != json.loads(json.dumps(found, default=str)):
            differences.append(f"{verb}: {found!s:.300} and {said.out:.300}")
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)
