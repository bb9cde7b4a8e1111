"""What README and docs say is so: commands run, links lead somewhere, files are as promised."""

from __future__ import annotations

import contextlib
import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.engine.process.resident.card import all_running
from odfbuild.engine.process.resident.find import stop
from tests.docs.console import DOCUMENTS, ROOT, commands, matches, run_all
from tests.example.odfbuild_project import MADE_BY_APPLY, ExampleProject
from tests.servers.binlog import mariadb_with_changes
from tests.servers.binlog import with_table as with_table_of_mariadb
from tests.servers.changes import postgres_with_changes, with_table

EXAMPLE = ROOT / "example_project"
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example project as `make example` leaves it."""
    return ExampleProject.applied(tmp_path_factory).root


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the project of each document lies in turn, so that all share an engine.

    Spark starts once for them, and not once for each.
    """
    folder = tmp_path_factory.mktemp("documents")
    # Beside it, as in the repository.
    (folder / "examples").symlink_to(ROOT / "examples")
    yield folder
    _stop_engines(folder)


def _stop_engines(folder: Path) -> None:
    for each in all_running():
        if Path(each.project).is_relative_to(folder):
            stop(each)


@pytest.fixture
def example(built: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example project for one document, with nothing that another one did to it."""
    monkeypatch.setenv("ODFBUILD_RESIDENT", "auto")
    monkeypatch.setenv("ODFBUILD_IDLE_MINUTES", "0.5")
    folder = place / "example_project"
    shutil.copytree(built, folder)
    yield folder
    for each in place.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != "examples":
            each.unlink()


@pytest.mark.spark
@pytest.mark.parametrize(
    "document",
    # These begin with nothing: see test_tutorial and test_shop.
    [each for each in DOCUMENTS if commands(each) and each.name not in ("tutorial.md", "shop.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_commands_do_what_the_document_shows(
    example: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if document.name == "resident-engine.md":
        _stop_engines(example.parent)  # It shows how one starts.
    with _server_of(document, monkeypatch):
        wrong = run_all(commands(document), example)
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


@contextlib.contextmanager
def _server_of(document: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The database that a document begins with, at `$SHOP_URL`."""
    if document.name == "change-data-capture-mariadb.md":
        with mariadb_with_changes() as other:
            found = with_table_of_mariadb(
                other,
                "CREATE TABLE orders (id int PRIMARY KEY, amount decimal(10, 2), customer text)",
                "INSERT INTO orders VALUES (1, 19.50, 'Ada'), (2, 7.25, 'Bob')",
            )
            monkeypatch.setenv("SHOP_URL", found.url(scheme="mariadb"))
            monkeypatch.setenv("SHOP_SOCKET", other.socket)
            monkeypatch.setenv("SHOP_NAME", found.name)
            yield
        return
    if document.name != "change-data-capture.md":
        yield
        return
    with postgres_with_changes() as server:
        shop = with_table(
            server,
            "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10, 2), customer text)",
            "INSERT INTO orders VALUES (1, 19.50, 'Ada'), (2, 7.25, 'Bob')",
        )
        monkeypatch.setenv("SHOP_URL", shop.url())
        yield


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_to_files(document: Path) -> None:
    links = [link for link in _LINK.findall(document.read_text()) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_picture_of_a_plan_shows_the_plan_of_the_tutorial() -> None:
    """`make picture` draws it anew."""
    picture = (ROOT / "docs" / "images" / "plan.svg").read_text()
    shown = {html.unescape(re.sub("<[^>]*>", "", line)) for line in picture.splitlines()}
    plan = next(
        command.output
        for command in commands(ROOT / "docs" / "tutorial.md")
        if "plan --format md" in command.text
    )
    (heading,) = re.findall(r"^### (.*)$", plan, re.MULTILINE)
    kept = [line.replace("\\", "") for line in re.findall(r"^- (\d.*)$", plan, re.MULTILINE)]
    assert kept
    assert {heading, *kept} <= shown


@pytest.mark.parametrize(
    ("promised", "printed", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a … c", "a b c", True),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…", "a", True),
        ("a", "a\nb", False),
        ("", "anything", True),
        ("1.0", "1x0", False),
    ],
)
def test_promised_output_is_compared_line_by_line(promised: str, printed: str, same: bool) -> None:
    assert matches(promised, printed) is same


def test_the_example_keeps_within_six_megabytes() -> None:
    files = [
        path
        for path in EXAMPLE.rglob("*")
        if path.is_file() and not set(path.relative_to(EXAMPLE).parts) & set(MADE_BY_APPLY)
    ]
    assert sum(path.stat().st_size for path in files) < 6_000_000
