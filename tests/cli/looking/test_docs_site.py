"""`docs build`: the catalogue as a folder of pages. What a browser makes of them: tests/site."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import commit, own_configuration, tiny

__all__ = ["own_configuration", "tiny"]

DESCRIBED = """\
    - kind: SetInfo
      description: Three <script>alert(1)</script> records
      keywords: [daily]
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: README.md
            content: |
              # About *root*

              <img src=x onerror=alert(1)> [bad](javascript:alert(1)) ![x](https://evil.example/x)
          - path: notes.txt
            content: </pre><script>alert(2)</script>
"""


class Html(HTMLParser):
    """What a page consists of."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(file.read_text())
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= given.keys()
        if tag in ("a", "link") and given.get("href"):
            self.links.append(given["href"])
        if given.get("src"):
            self.loads.append(given["src"])

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def described(tiny: Tiny) -> None:
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(file.read_text() + DESCRIBED)


def build(odfbuild: Program, *arguments: str) -> Path:
    odfbuild.ok("docs", "build", "-o", "site", *arguments)
    return odfbuild.root / "site"


def pages(folder: Path) -> Iterator[tuple[Path, Html]]:
    for file in sorted(folder.rglob("*.html")):
        yield file, Html(file)


def test_a_dataset_has_a_page_with_all_that_is_known_of_it(tiny: Tiny, odfbuild: Program) -> None:
    described(tiny)
    config = tiny.root / "odfbuild.yaml"
    config.write_text(
        config.read_text() + "  checks:\n    - {match: [root], notNull: [id]}\n"
        "  freshness:\n    - {match: [root], maxAge: 1d}\n"
        "  owners:\n    - {match: [root], owners: ['@data/rail']}\n"
    )
    made = commit(tiny, "Describe it")
    odfbuild.apply()
    folder = build(odfbuild, "--at", "2024-01-05T00:00:00Z")
    root = Html(folder / "datasets" / "root.html").text
    for shown in (
        "Three <script>alert(1)</script> records",
        "About root",
        "</pre><script>alert(2)</script>",
        "3 records",
        "up to date",
        "daily",
        "@data/rail",
        "notNull: id",
        "may be 1d old: stale",
        f"Describe it {made[:10]}",
        "primaryKey",
        "committed",
        "AddData",
        str(tiny.workspace().dataset("root").head()),
    ):
        assert shown in root, shown
    derived = Html(folder / "datasets" / "derived.html")
    for shown in ("root . value (derivation)", "Query of block #1: records 0 to 2", "value * 10"):
        assert shown in derived.text, shown
    assert "derived . value" in root
    overview = Html(folder / "index.html").text
    for shown in ("Datasets of tiny", "2 datasets, as of 2024-01-05T00:00:00Z", "2 up to date"):
        assert shown in overview, shown
    [run] = (folder / "runs").iterdir()
    assert "committed" in Html(run).text


def test_every_link_leads_to_a_file_of_the_folder_and_nothing_is_loaded_from_elsewhere(
    tiny: Tiny, odfbuild: Program
) -> None:
    described(tiny)
    odfbuild.apply()
    folder = build(odfbuild)
    for file, page in pages(folder):
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if link == "https://evil.example/x":  # a picture of the readme, now a link
                continue
            assert not parts.scheme, (file, link)
            target = file if not parts.path else file.parent / unquote(parts.path)
            assert target.resolve().is_file(), (file, link)
        assert all(load.endswith(".js") for load in page.loads)
        assert page.attributes.isdisjoint({"onerror", "onload", "style"})
        assert "img" not in page.tags
        assert "default-src 'none'" in file.read_text()


def test_another_build_writes_only_what_differs(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    folder = build(odfbuild, "--at", "2024-01-05T00:00:00Z")
    times = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    said = odfbuild.ok("docs", "build", "-o", "site", "--at", "2024-01-05T00:00:00Z", "--json")
    assert said.data["written"] == 0
    assert said.data["unchanged"] == len(times) - 1  # and the list of files
    assert times == {file: file.stat().st_mtime_ns for file in times}
    own = folder / "CNAME"
    own.write_text("data.example.org\n")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    tiny.derive("second", QUERY)
    odfbuild.ok("docs", "build", "-o", "site", "-s", "root", "-s", "second")
    names = {file.name for file in (folder / "datasets").iterdir()}
    assert names == {"root.html", "second.html"}
    assert own.exists()


def test_a_folder_or_file_of_somebody_else_is_refused(tiny: Tiny, odfbuild: Program) -> None:
    folder = tiny.root / "site"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    assert "error[E1260]" in odfbuild("docs", "build", "-o", "site").err
    (folder / ".odfbuild-site.json").write_text('{"files": ["../odfbuild.yaml", "/etc/hosts"]}')
    assert "error[E1261]" in odfbuild("docs", "build", "-o", "site").err
    assert (folder / "index.html").read_text() == "mine"
    (folder / "index.html").unlink()
    elsewhere = tiny.root / "elsewhere"
    elsewhere.mkdir()
    (folder / "datasets").symlink_to(elsewhere)
    assert "error[E1261]" in odfbuild("docs", "build", "-o", "site").err
    assert list(elsewhere.iterdir()) == []
    (folder / "datasets").unlink()
    build(odfbuild)
    assert (tiny.root / "odfbuild.yaml").exists()
    assert "is no folder; add --single-page" in odfbuild("docs", "build", "-o", "x.html").err


def test_a_build_that_was_killed_is_finished_by_the_next_one(tiny: Tiny, odfbuild: Program) -> None:
    folder = build(odfbuild)
    whole = {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.css")}
    # What a kill leaves: the list first, then some of the files, one of them not yet in its place.
    listed = json.loads((folder / ".odfbuild-site.json").read_text())
    assert "datasets/root.html" in listed["files"]
    shutil.rmtree(folder / "datasets")
    (folder / "datasets").mkdir()
    (folder / "datasets" / ".pending-root.html").write_text("half")
    build(odfbuild)
    assert sorted(file.name for file in (folder / "datasets").iterdir()) == [
        "derived.html",
        "root.html",
    ]
    assert whole == {path: (folder / path).read_bytes() for path in whole}


def test_many_datasets_have_several_lists_and_no_page_grows_with_their_number(
    tiny: Tiny, odfbuild: Program
) -> None:
    (tiny.root / "datasets" / "many.yaml.j2").write_text(
        "matrix:\n  n: " + json.dumps(list(range(620))) + "\n---\n"
        "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: many.d{{ n }}\n  kind: Derivative\n"
        "  metadata:\n    - kind: SetTransform\n      inputs: [{datasetRef: root, alias: source}]\n"
        f"      transform: {{kind: Sql, engine: spark, query: '{QUERY}'}}\n"
    )
    folder = build(odfbuild)
    assert len(list((folder / "lists").iterdir())) == 2
    assert "many.d619.html" in (folder / "lists" / "2.html").read_text()
    assert max(file.stat().st_size for file in folder.rglob("*.html")) < 200_000
    assert "and 521 more datasets" in Html(folder / "datasets" / "root.html").text


def test_values_are_shown_of_datasets_that_are_let_out_and_of_no_others(
    tiny: Tiny, odfbuild: Program
) -> None:
    # Values that nothing else contains: neither hashes nor sizes nor queries.
    secret, told = "7770777", "77707770"
    file = tiny.root / "data" / "1.csv"
    file.write_text(file.read_text().replace(",1,1\n", f",1,{secret}\n"))
    odfbuild.apply()

    def holding(value: str) -> set[str]:
        folder = build(odfbuild)
        found = (each for each in folder.rglob("*") if each.is_file())
        return {each.name for each in found if value.encode() in each.read_bytes()}

    assert holding(secret) == set()
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text()
    config.write_text(text + "  show:\n    - {match: [derived]}\n")
    assert holding(told) == {"derived.html"}
    assert holding(f">{secret}<") == set()
    page = Html(tiny.root / "site" / "datasets" / "derived.html").text
    assert "Statistics of the newest 3 records" in page
    config.write_text(text + "  show:\n    - {match: [derived], columns: {exclude: [value]}}\n")
    assert holding(told) == set()
    assert "Sample" in Html(tiny.root / "site" / "datasets" / "derived.html").text
    config.write_text(text + "  show:\n    - {match: [derived], samples: false}\n")
    assert holding(told) == set()


def test_pages_call_a_result_what_apply_calls_it(tiny: Tiny, odfbuild: Program) -> None:
    tiny.arrive(2)
    odfbuild.ok("plan", "-s", "root", "-o", "plan.json")
    odfbuild.ok("apply", "-y", "plan.json")
    assert ", 1 conflict." in odfbuild("apply", "-y", "plan.json").out
    odfbuild.ok("docs", "build", "-o", "conflict")
    odfbuild.ok("docs", "build", "--single-page", "-o", "conflict.html")
    site = tiny.root / "conflict"
    newest = max((site / "runs").iterdir())
    pages = newest, site / "datasets" / "root.html", site / "index.html"
    for page in (*pages, tiny.root / "conflict.html"):
        assert "conflict" in Html(page).text
        assert "lost" not in Html(page).text


def test_a_run_that_failed_shows_its_code_and_no_value(tiny: Tiny, odfbuild: Program) -> None:
    secret = "7770777x"
    file = tiny.root / "data" / "1.csv"
    file.write_text(file.read_text().replace(",1,1\n", f",1,{secret}\n"))
    failed = odfbuild("apply", "-y")
    assert failed.code != 0
    assert secret in failed.err + failed.out
    folder = build(odfbuild)
    single = odfbuild("docs", "build", "--single-page", "-o", "-").out
    texts = [each.read_text() for each in folder.rglob("*") if each.is_file()]
    assert not any(secret in text for text in [*texts, single])
    assert "failed" in Html(folder / "datasets" / "root.html").text
    assert "failed" in single


def test_what_a_page_offers_to_copy_reads_the_dataset_at_the_block_shown(
    tiny: Tiny, odfbuild: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    odfbuild.apply()
    text = (build(odfbuild) / "datasets" / "derived.html").read_text()
    head = str(tiny.workspace().dataset("derived").head())
    found = dict(
        re.findall(r'<h3>(.*?)</h3>\n<pre class="copy" tabindex="0">(.*?)</pre>', text, re.S)
    )
    assert list(found) == ["Python", "DuckDB", "polars", "Spark", "Command line"]
    assert all(head in each for each in found.values())
    tiny.arrive(2)
    odfbuild.apply()
    for tool in ("Python", "DuckDB", "polars"):
        *lines, last = html.unescape(found[tool]).split("\n")
        names: dict[str, Any] = {}
        exec("\n".join(lines), names)
        result = eval(last, names)
        if result is not None:
            assert len(result) == 3  # the fourth record came later
    assert head in capsys.readouterr().out
    command = shlex.split(html.unescape(found["Command line"]))
    assert len(odfbuild.ok(*command[1:], "--json").data) == 3
    assert shlex.split(html.unescape(found["Spark"]))[:3] == ["odfbuild", "sql", "--as-of"]
