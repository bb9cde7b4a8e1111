"""The query of a derivative in a file of its own, `NAME.sql` beside `NAME.yaml`."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from textwrap import dedent

import pytest

from odfbuild.apply.definitions import resolve_changes
from odfbuild.engine.release import engine_version
from odfbuild.errors import OdfbuildError
from odfbuild.limits import FILE_BYTES
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.git.at_revision import sides
from odfbuild.project.load import read_project
from odfbuild.project.locate import locate_in_query
from odfbuild.project.model import Definition
from odfbuild.survey.survey import survey
from tests.apply.in_process import Program
from tests.project.write_project import derived_yaml, root_yaml, write_project

QUERY = "SELECT event_time, id, city\nFROM src\nWHERE city = 'Oslo'\n"
COLUMNS = "event_time TIMESTAMP, id BIGINT, city STRING"


def without_query(name: str = "total") -> str:
    text = derived_yaml(name, "root")
    return text[: text.index("        query:")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "root.yaml": root_yaml("root", COLUMNS),
        "total.yaml": without_query(),
        "total.sql": QUERY,
    }
    root = write_project(tmp_path / "project", files)
    (root / "data").mkdir()
    (root / "data" / "1.csv").write_text("event_time,id,city\n2024-01-01T00:00:00Z,1,Oslo\n")
    return root


@pytest.fixture
def odfbuild(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(project, monkeypatch, capsys)


def definition(root: Path, name: str = "total") -> Definition:
    return next(each for each in read_project(root).definitions if each.name == name)


def query_of(root: Path, name: str = "total") -> str:
    transform = definition(root, name).snapshot.metadata[-1].transform
    (step,) = transform.queries
    return str(step.query)


def errors(root: Path) -> list[OdfbuildError]:
    return [error for each in read_project(root).wrong for error in each.errors]


def test_the_definition_is_the_same_as_with_the_query_in_it(project: Path) -> None:
    apart = definition(project).snapshot
    (project / "datasets" / "total.sql").unlink()
    (project / "datasets" / "total.yaml").write_text(derived_yaml("total", "root", QUERY.rstrip()))
    assert definition(project).snapshot == apart


def test_a_mistake_is_told_at_its_line_and_column_of_the_sql_file(
    odfbuild: Program, project: Path
) -> None:
    (project / "datasets" / "total.sql").write_text(QUERY.replace("id, city", "id,\n  town"))
    said = odfbuild("plan")
    assert "error[E0501]" in said.out
    assert "--> datasets/total.sql:2:3" in said.out
    assert "2 |   town" in said.out
    said = odfbuild("validate")
    assert said.code == 1
    assert "--> datasets/total.sql:2:3" in said.err


def test_a_changed_sql_file_is_read_again_and_an_unchanged_one_is_not(
    project: Path, odfbuild: Program
) -> None:
    def settle() -> None:
        then = time.time() - 1_000
        for file in (project / "datasets").iterdir():
            os.utime(file, (then, then))

    settle()
    read_project(project)
    assert definition(project).key is not None
    (project / "datasets" / "total.sql").write_text(QUERY.replace("Oslo", "Kyiv"))
    assert "Kyiv" in query_of(project)
    settle()
    read_project(project)
    (project / "datasets" / "total.sql").unlink()
    (error,) = errors(project)
    assert (error.code, "`.sql` for `.yaml`" in str(error.help)) == ("E0641", True)


def test_a_template_has_a_template_beside_it_and_errors_keep_the_lines_of_that(
    project: Path,
) -> None:
    head = "matrix:\n  city: [Oslo, Kyiv]\n---\n"
    text = without_query("by.{{ city | lower }}")
    (project / "datasets" / "by.yaml.j2").write_text(head + text)
    sql = "{# one for each city #}\n" + QUERY.replace("Oslo", "{{ city }}")
    (project / "datasets" / "by.sql.j2").write_text(sql)
    assert query_of(project, "by.oslo").splitlines()[-1] == "WHERE city = 'Oslo'"
    made = definition(project, "by.kyiv")
    place = locate_in_query(read_project(project), made, ("metadata", 0, "transform"), 0, 4, 7)
    assert place is not None
    assert (place.file, place.line, place.instance) == ("datasets/by.sql.j2", 4, "city=Kyiv")
    (project / "datasets" / "by.sql.j2").write_text(sql.replace("{{ city", "{{ town"))
    (error,) = errors(project)
    assert error.code == "E0121"
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("datasets/by.sql.j2", 4)


def test_two_queries_are_refused_at_the_one_in_the_definition(project: Path) -> None:
    (project / "datasets" / "total.yaml").write_text(derived_yaml("total", "root"))
    (error,) = errors(project)
    assert error.code == "E0128"
    assert str(error.location) == "datasets/total.yaml:14:9"
    assert "delete `query` here, or delete datasets/total.sql" in str(error.help)


def test_a_query_beside_a_root_or_several_derivatives_is_refused(project: Path) -> None:
    (project / "datasets" / "root.sql").write_text(QUERY)
    both = f"{without_query('one')}---\n{without_query('two')}"
    (project / "datasets" / "total.yaml").write_text(both)
    said = [(each.code, str(each.location), each.message) for each in errors(project)]
    assert said == [
        (
            "E0128",
            "datasets/root.sql",
            "datasets/root.sql has a query, and datasets/root.yaml has no SetTransform for it",
        ),
        (
            "E0128",
            "datasets/total.sql",
            "datasets/total.sql has a query, and datasets/total.yaml has several SetTransform "
            "for it",
        ),
    ]


def test_links_out_of_the_project_and_large_files_are_refused(
    project: Path, tmp_path: Path
) -> None:
    file = project / "datasets" / "total.sql"
    file.unlink()
    (tmp_path / "secret").write_text(QUERY)
    file.symlink_to(tmp_path / "secret")
    (error,) = errors(project)
    assert (error.code, error.location and error.location.file) == ("E0940", "datasets/total.sql")
    file.unlink()
    file.write_bytes(b"-" * (FILE_BYTES + 1))
    (error,) = errors(project)
    assert (error.code, str(error.location)) == ("E0126", "datasets/total.sql")
    file.write_bytes(b"\xff")
    (error,) = errors(project)
    assert (error.code, str(error.location)) == ("E0103", "datasets/total.sql")


def test_a_query_without_definition_is_found_by_lint(odfbuild: Program, project: Path) -> None:
    (project / "datasets" / "totals.sql").write_text(QUERY)
    said = odfbuild("lint")
    assert "warning[L025 lone-query]: no definition has this query: there is no " in said.out
    assert "datasets/totals.yaml" in said.out
    assert "--> datasets/totals.sql" in said.out
    assert "datasets/total.sql\n" not in said.out


def test_lint_places_findings_of_queries_in_the_sql_file(odfbuild: Program, project: Path) -> None:
    (project / "datasets" / "total.sql").write_text("SELECT *\nFROM src\n")
    assert "--> datasets/total.sql:1:8" in odfbuild("lint").out


def test_fmt_and_migrate_leave_it_alone_and_render_writes_it_out(
    odfbuild: Program, project: Path
) -> None:
    before = (project / "datasets" / "total.sql").read_bytes()
    odfbuild.ok("fmt")
    odfbuild.ok("fmt", "datasets/total.sql")
    assert odfbuild.ok("migrate").err.strip() == "All definitions have the current syntax."
    assert (project / "datasets" / "total.sql").read_bytes() == before
    out = odfbuild.ok("render", "-s", "total").out
    assert "          FROM src\n          WHERE city = 'Oslo'\n" in out


def test_a_revision_of_git_has_the_query_of_its_time(project: Path) -> None:
    def git(*arguments: str) -> None:
        said = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(("git", *said, *arguments), cwd=project, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "datasets", "odfbuild.yaml")
    git("commit", "-q", "-m", "one")
    (project / "datasets" / "total.sql").write_text(QUERY.replace("Oslo", "Kyiv"))
    with sides(read_project(project).config, "HEAD", None) as pair:
        found = [
            [each.snapshot.metadata[-1].transform.queries[0].query for each in side.definitions]
            for side in (pair.before, pair.after)
        ]
    assert found == [[QUERY], [QUERY.replace("Oslo", "Kyiv")]]


def test_a_plan_says_which_line_of_the_sql_file_changed(project: Path) -> None:
    found = survey(project)
    for each in found.plan.datasets:
        events = resolve_changes(each, found.workspace, engine_version())
        found.workspace.create(each.name, each.kind, events, Timestamp.now())
    (project / "datasets" / "total.sql").write_text(QUERY.replace("Oslo", "Kyiv"))
    planned = {each.name: each for each in survey(project).plan.datasets}
    (change,) = planned["total"].changes
    assert str(change.location) == "datasets/total.sql:3:1"


def test_new_writes_both_files_if_asked(odfbuild: Program, project: Path) -> None:
    said = odfbuild.ok("new", "derivative", "copy", "root", "--sql-file")
    assert said.out == "Created datasets/copy.yaml and datasets/copy.sql: copy\n"
    assert (project / "datasets" / "copy.sql").read_text() == dedent(
        """\
        SELECT
          event_time,
          id,
          city
        FROM root
        """
    )
    assert "# The query is in copy.sql.\n" in (project / "datasets" / "copy.yaml").read_text()
    odfbuild.ok("new", "matrix", "by", "root", "--over", "city=Oslo,Kyiv", "--sql-file")
    assert "= '{{ city }}'" in (project / "datasets" / "by.sql.j2").read_text()
    odfbuild.ok("validate")
    said = odfbuild("new", "derivative", "more", "root", "--sql-file", "--json", "-n")
    assert said.data["query_file"] == "datasets/more.sql"
    (project / "datasets" / "more.sql").write_text("")
    said = odfbuild("new", "derivative", "more", "root", "--sql-file")
    assert "error[E0114]: datasets/more.sql is there already" in said.err
    said = odfbuild("new", "files", "files", "data/1.csv", "--sql-file")
    assert "error[E0143]: a dataset of kind 'files' has no query" in said.err
