"""What a plan may cost, and that what makes it cheap never shows."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

from odfbuild.cli.main import run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NOT_IMPORTED = ("pyspark", "pyarrow", "numpy", "sqlglot", "networkx", "pydantic", "rich", "yaml")


def script(name: str, *arguments: str) -> None:
    subprocess.run([sys.executable, str(BENCHMARKS / name), *arguments], check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    script("generate.py", "--kind", "odf", "--n", "40", "--out", str(root))
    return root


def imported_by_a_plan(project: Path, told: str = "40 to create") -> str:
    code = (
        "import sys\nfrom odfbuild.cli.main import run\nrun(['plan'])\n"
        f"print([m for m in {NOT_IMPORTED!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert told in done.stdout
    return done.stdout.splitlines()[-1]


def make_old(project: Path) -> None:
    """Files that were changed within two seconds are read again."""
    a_minute_ago = time.time() - 60
    for each in (project / "datasets").rglob("*.yaml"):
        os.utime(each, (a_minute_ago, a_minute_ago))


def test_a_plan_imports_nothing_that_it_does_not_need(project: Path) -> None:
    make_old(project)
    # The first one has to read the queries and to find the order of the datasets.
    assert imported_by_a_plan(project) == "['sqlglot', 'networkx', 'yaml']"
    assert imported_by_a_plan(project) == "[]"


def test_new_records_are_planned_without_reading_queries_that_were_read_before(
    project: Path,
) -> None:
    changed = max((project / "datasets").rglob("layer10-*.yaml"))
    query = "SELECT MAX(event_time) AS event_time, COUNT(*) AS n FROM"
    changed.write_text(re.sub(r"SELECT .*? FROM", query, changed.read_text(), flags=re.DOTALL))
    chains(project)
    make_old(project)
    new_records(project)
    imported_by_a_plan(project, "kept up to date as changelog: aggregation")
    another = first(project / "data", "part-1.csv")
    another.with_name("part-2.csv").write_text(another.read_text())
    assert imported_by_a_plan(project, "kept up to date as changelog: aggregation") == "[]"


def test_the_graph_is_built_again_when_an_input_changes(project: Path) -> None:
    imported_by_a_plan(project)
    changed = first(project / "datasets", "layer02-*.yaml")
    text = changed.read_text()
    query = text.index("      transform:")
    further = "        - datasetRef: root-000000\n          alias: further\n"
    changed.write_text(text[:query] + further + text[query:])
    assert imported_by_a_plan(project) == "['sqlglot', 'networkx', 'yaml']"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def first(folder: Path, pattern: str) -> Path:
    return min(folder.rglob(pattern))


def changed_query(project: Path) -> None:
    edit(first(project / "datasets", "layer02-*.yaml"), "amount >=", "amount + 1 >=")


def changed_description(project: Path) -> None:
    edit(first(project / "datasets", "root-*.yaml"), "Root root", "The root")


def changed_name(project: Path) -> None:
    file = max((project / "datasets").rglob("layer10-*.yaml"))
    edit(file, f"name: {file.stem}", "name: another")


def new_file(project: Path) -> None:
    text = first(project / "datasets", "root-*.yaml").read_text()
    (project / "datasets" / "new.yaml").write_text(text.replace("name: root-000000", "name: new"))


def broken_file(project: Path) -> None:
    (project / "datasets" / "broken.yaml").write_text("kind: [\n")


def corrected_file(project: Path) -> None:
    (project / "datasets" / "broken.yaml").unlink()


def new_records(project: Path) -> None:
    source = first(project / "data", "*.csv")
    source.with_name("part-1.csv").write_text(source.read_text() * 2)


def lost_source(project: Path) -> None:
    rmtree(max((project / "data").iterdir()))


def moved_source(project: Path) -> None:
    source = first(project / "data", "part-0.csv")
    source.rename(source.with_name("part-9.csv"))


def a_variable(project: Path) -> None:
    edit(project / "odfbuild.yaml", "name: benchmark", "name: benchmark\n  vars: {a: 1}")


def chains(project: Path) -> None:
    script("commit.py", str(project))


CHANGES = (
    *(
        chains,
        changed_query,
        changed_description,
        changed_name,
        new_file,
        broken_file,
        corrected_file,
    ),
    *(new_records, moved_source, a_variable, lost_source),
)


def test_deleting_the_cache_changes_no_byte_of_a_plan(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)

    def shown(form: str) -> tuple[int, str]:
        code = run(["plan", "--full", "--format", form])
        seen = capsys.readouterr()
        lines = (seen.out + seen.err).splitlines()
        return code, "\n".join(line for line in lines if '"created_at"' not in line)

    def nothing(_: Path) -> None:
        pass

    def settle(step: int) -> None:
        """As if the change was made a while ago: what is newer than two seconds is not trusted."""
        then = time.time() - 1_000
        for path in (project, *project.rglob("*")):
            if ".odfbuild" not in path.parts and path.stat().st_mtime > then + 500:
                os.utime(path, (then + step, then + step))

    changes: tuple[Callable[[Path], None], ...] = (nothing, *CHANGES)
    codes = []
    for step, change in enumerate(changes):
        change(project)
        settle(step)
        # First with what the plan before the change left, then with what this one left.
        warm = [shown("text"), shown("text"), shown("json"), shown("md")]
        rmtree(project / ".odfbuild")
        cold = [shown(form) for form in ("text", "text", "json", "md")]
        assert warm == cold, change.__name__
        codes.append(cold[0][0])
    assert codes == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
