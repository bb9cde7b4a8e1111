"""Definitions of earlier versions are recognised, and rewritten without losing what people wrote.

The files in `old_form` are ours, written after the metadata references of old.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odfbuild.cli.main import run
from odfbuild.project.load import load_project
from odfbuild.project.migrate import migrate
from odfbuild.project.old_form import old_parts
from odfbuild.project.yaml.source import read_documents
from tests.project.write_project import derived_yaml, listing, root_yaml, write_project
from tests.report.golden import assert_golden

OLD = Path(__file__).parent / "old_form"
DEFINITIONS = sorted(OLD.glob("*.yaml"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with old files, one of today's, and no template."""
    root = write_project(tmp_path / "project", {"new.yaml": root_yaml("cities")})
    for file in DEFINITIONS:
        shutil.copy(file, root / "datasets")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    return root


@pytest.mark.parametrize("file", DEFINITIONS, ids=lambda file: file.stem)
def test_an_old_definition_is_rewritten_with_its_comments(file: Path) -> None:
    found = migrate(file.read_text(), file.name)
    notes = [f"{e.place}: {'lost: ' if e.lost else ''}{e.message}" for e in found.edits]
    assert_golden(f"migrate/{file.stem}.yaml", found.after.rstrip("\n"))
    assert_golden(f"migrate/{file.stem}.txt", "\n".join(notes))
    comments = [line.split("#", 1)[1] for line in file.read_text().splitlines() if "#" in line]
    assert [line.split("#", 1)[1] for line in found.after.splitlines() if "#" in line] == comments
    assert found.problems == ()


@pytest.mark.parametrize("file", DEFINITIONS, ids=lambda file: file.stem)
def test_what_was_rewritten_is_in_todays_form(file: Path) -> None:
    after = migrate(file.read_text(), file.name).after
    again = migrate(after, file.name)
    assert not again.is_needed
    assert again.after == after


def test_validate_says_what_is_old_and_which_command_mends_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(OLD / "rates.yaml.j2", project / "datasets")
    assert run(["validate"]) == 1
    assert_golden("errors/old-form.txt", capsys.readouterr().err)


def test_a_project_of_old_files_is_rewritten_and_valid(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(project / "datasets")
    assert run(["migrate", "--check"]) == 1
    listed = capsys.readouterr().out.splitlines()
    assert listed == [f"datasets/{file.name}" for file in DEFINITIONS]
    assert run(["migrate"]) == 0
    shown = capsys.readouterr()
    assert "+  name: ca.metro.stations\n" in shown.out
    assert "datasets/stations.yaml:23:7: check this: `enforceSchema`" in shown.err
    assert "`odfbuild migrate --write` does it" in shown.err
    assert listing(project / "datasets") == before

    assert run(["migrate", "-y", "--write"]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written == [f"rewrote datasets/{file.name}" for file in DEFINITIONS]
    assert listing(project / "datasets")["new.yaml"] == before["new.yaml"]
    names = {definition.name for definition in load_project(project).definitions}
    assert names == {"between", "ca.metro.busy", "ca.metro.stations", "ca.metro.trips", "cities"}
    assert run(["migrate", "--check"]) == 0
    assert "All definitions have the current syntax." in capsys.readouterr().err


def test_a_file_may_come_through_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with (OLD / "trips.yaml").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        assert run(["migrate", "-"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: ca.metro.trip"
    )
    assert shown.err.startswith("standard input:10:7: check this: `multiLine`")


def test_decode_names_the_command_that_mends_an_old_definition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["decode", str(OLD / "trips.yaml")]) == 1
    said = capsys.readouterr().err
    assert "error[E0111]" in said
    assert f"{OLD / 'trips.yaml'}:4:3" in said
    assert "odfbuild migrate --write" in said


def test_a_template_is_changed_by_hand_and_told_once(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in DEFINITIONS:
        (project / "datasets" / file.name).unlink()
    shutil.copy(OLD / "rates.yaml.j2", project / "datasets")
    before = listing(project / "datasets")
    assert run(["migrate", "-y", "--write"]) == 1
    assert_golden("migrate/template.txt", capsys.readouterr().err)
    assert listing(project / "datasets") == before


def test_what_is_wrong_anyway_is_said_in_the_new_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "kind: DatasetSnapshot\ncontent:\n  id: a\n  nonsense: 1\n  source: {kind: root}\n"
    found = migrate(text, "a.yaml")
    assert [problem.code for problem in found.problems] == ["E0104", "E0106", "E0106", "E0106"]
    (tmp_path / "a.yaml").write_text(text)
    assert run(["migrate", "-y", "--write", str(tmp_path / "a.yaml")]) == 1
    assert (tmp_path / "a.yaml").read_text() == found.after
    assert run(["migrate", str(tmp_path / "b.yaml")]) == 1
    assert "error[E0103]" in capsys.readouterr().err


def test_anchors_are_rewritten_without_comments_and_said_so() -> None:
    text = (
        "# gone\nkind: DatasetSnapshot\nversion: 1\ncontent:\n  id: &name a\n"
        "  source: {kind: root, fetch: {kind: url, url: 'http://a'}, read: {kind: jsonLines},"
        " merge: {kind: ledger, primaryKey: [*name]}}\n"
    )
    found = migrate(text, "a.yaml")
    assert found.edits[0].lost
    assert "anchors" in found.edits[0].message
    assert found.problems == ()
    merge = read_documents(found.after, "a.yaml")[0]["content"]["metadata"][0]["merge"]
    assert merge == {"kind": "ledger", "primaryKey": ["a"]}


def test_an_identity_beside_a_name_is_taken_out_and_said() -> None:
    (data,) = read_documents(root_yaml("cities"), "x.yaml")
    data["content"]["id"] = "did:odf:x"
    (change,) = old_parts(data)
    assert (change.path, change.lost) == (("content", "id"), True)


@pytest.mark.parametrize(
    "text", [root_yaml("cities"), derived_yaml("a", "cities"), "kind: Thing\n"]
)
def test_nothing_of_today_counts_as_old(text: str) -> None:
    assert all(old_parts(data) == () for data in read_documents(text, "x.yaml"))
    assert migrate(text, "x.yaml").after == text


def test_the_column_of_operations_joins_a_vocabulary_that_exists() -> None:
    text = root_yaml("cities").replace(
        "kind: Append\n",
        "kind: snapshot\n        primaryKey: [id]\n        observationColumn: seen\n",
    )
    text += "    - kind: setVocab  # names\n      eventTimeColumn: day\n"
    found = migrate(text, "x.yaml")
    assert found.after.endswith(
        "- kind: setVocab  # names\n      eventTimeColumn: day\n      operationTypeColumn: seen\n"
    )
    assert [edit.lost for edit in found.edits] == [True, False]


_PATTERNS = {
    "dateFormat": {
        "dd.MM.yyyy": "convert it in `preprocess`: to_date(COLUMN, 'dd.MM.yyyy')",
        "yyMMdd": "to_date(COLUMN, 'yyMMdd'); `yy` is a year from 2000 on",
        "YYYY-'W'ww": "Spark reads no texts by the letters `Y` and `w`",
    },
    "timestampFormat": {
        "yyyy-MM-dd'T'HH:mm:ss": "to_timestamp(COLUMN, \"yyyy-MM-dd'T'HH:mm:ss\")",
        "EEE MMM dd HH:mm:ss zzz yyyy": "Spark reads no texts by the letter `E`",
        "yyyy 'Woche'": "to_timestamp(COLUMN, \"yyyy 'Woche'\")",
    },
}


@pytest.mark.parametrize(
    ("option", "pattern"), [(option, each) for option, them in _PATTERNS.items() for each in them]
)
def test_a_pattern_of_dates_or_times_is_taken_out_and_named_with_what_to_write_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, pattern: str
) -> None:
    file = tmp_path / "cities.yaml"
    line = f"        {option}: {json.dumps(pattern)}  # as they write it\n"
    before = root_yaml("cities")
    file.write_text(before.replace("        header: true\n", f"        header: true\n{line}"))
    assert run(["migrate", str(file)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"{file}:15:9: check this: `{option}: {pattern}`: no equivalent, declare the " in told
    assert _PATTERNS[option][pattern] in told
    assert run(["migrate", "--check", str(file)]) == 1
    assert run(["migrate", "-y", "--write", str(file)]) == 0
    assert option not in file.read_text()
    assert file.read_text().replace("  # as they write it", "") == before


@pytest.mark.parametrize("option", _PATTERNS)
def test_the_one_format_that_is_read_stays(option: str) -> None:
    text = root_yaml("cities").replace(
        "header: true\n", f"header: true\n        {option}: rfc3339\n"
    )
    assert not migrate(text, "x.yaml").is_needed
