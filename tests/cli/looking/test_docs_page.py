"""`docs build`: the catalogue of a project as one page."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import urllib.error
import urllib.request
from html.parser import HTMLParser

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.real import BINARY, ENVIRONMENT
from tests.cli.repository import commit, own_configuration, tiny

__all__ = ["own_configuration", "tiny"]

INFO = (
    "    - kind: SetInfo\n      description: Three <script>alert(1)</script> records\n"
    "      keywords: [daily]\n"
)


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given[key] or "" for key in ("href", "src") if key in given]

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(filter(None, self.words))


def built(odfbuild: Program, *arguments: str) -> Page:
    return Page(odfbuild.ok("docs", "build", "--single-page", "-o", "-", *arguments).out)


def test_the_page_tells_of_each_dataset(tiny: Tiny, odfbuild: Program) -> None:
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(file.read_text() + INFO)
    config = tiny.root / "odfbuild.yaml"
    config.write_text(
        config.read_text() + "  checks:\n    - {match: [root], notNull: [id]}\n"
        "  freshness:\n    - {match: [root], maxAge: 1d}\n"
    )
    made = commit(tiny, "Describe it")
    odfbuild.apply()
    page = built(odfbuild, "--at", "2024-01-05T00:00:00Z")
    for shown in (
        "Datasets of tiny",
        "Three <script>alert(1)</script> records",
        "3 records",
        "int64",
        "up to date",
        "daily",
        "notNull: id",
        "stale",
        "Ann, 20",
        f"Describe it {made[:10]}",
        "datasets/derived.yaml",
        "value * 10 AS value",
        "records 0 to 2 by the query of block #1",
        "ExecuteTransform",
        str(tiny.workspace().dataset("root").head()),
    ):
        assert shown in page.text, shown


def test_the_page_needs_nothing_else(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    page = built(odfbuild)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert {link[0] for link in page.links} == {"#"}
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert page.ids == ["d-derived", "d-root"]
    assert page.links.count("#d-root") == 3  # from the list, and from its reader, also as its root


def test_what_was_never_applied_and_what_is_not_defined_have_a_place(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    (tiny.root / "datasets" / "derived.yaml").unlink()
    tiny.derive("second", QUERY)
    page = built(odfbuild)
    assert "nothing: only its chain is here" in page.text
    assert "none: it was never applied" in page.text
    assert page.ids == ["d-derived", "d-root", "d-second"]


def test_it_is_written_to_a_file(tiny: Tiny, odfbuild: Program) -> None:
    said = odfbuild.ok("docs", "build", "--single-page", "-s", "root")
    file = tiny.root / ".odfbuild" / "docs.html"
    assert said.err == f"Wrote 1 dataset to {file}.\n"
    assert Page(file.read_text()).ids == ["d-root"]
    odfbuild.ok("docs", "build", "--single-page", "-o", "page.html")
    assert (
        "error[E0910]" in odfbuild("docs", "build", "--single-page", "-o", "nowhere/page.html").err
    )


def test_owners_are_shown_where_people_look(tiny: Tiny, odfbuild: Program) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write(
            "  owners:\n"
            "    - {match: ['*'], owners: ['@data/all', ann@example.org]}\n"
            "    - {match: [Derived], owners: ['@data/derived']}\n"
        )
    listed = {each["name"]: each["owners"] for each in odfbuild.ok("ls", "--json").data}
    assert listed == {"root": ["@data/all", "ann@example.org"], "derived": ["@data/derived"]}
    text = odfbuild.ok("plan", "--md", "-o", "plan.json").out
    asked = text[text.index("Owners:") :].splitlines()
    assert asked[2:5] == [
        "- `@data/all`: `root`",
        "- `@data/derived`: `derived`",
        "- `ann@example.org`: `root`",
    ]
    assert odfbuild.ok("show", "plan.json", "--md").out == text
    page = odfbuild.ok("docs", "build", "--single-page", "-o", "-").out
    assert "<tr><th>owners</th><td>@data/all, ann@example.org</td></tr>" in page
    assert odfbuild("ls", "--json").data[0]["owners"] == ["@data/derived"]


def test_pages_are_served_as_they_would_be_built_now(tiny: Tiny) -> None:
    def fetched(host: str = "", path: str = "") -> tuple[int, str]:
        headers = {"Host": host} if host else {}
        request = urllib.request.Request(address + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    with (
        subprocess.Popen(
            [BINARY, "docs", "serve", "--port", "0"],
            cwd=tiny.root,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
        contextlib.ExitStack() as at_end,
    ):
        at_end.callback(server.kill)  # a failure must not wait for it
        assert server.stdout is not None
        address = server.stdout.readline().split()[1]
        status, page = fetched()
        assert (status, page.count("<tr><th")) == (200, 3)
        assert fetched(path="datasets/root.html")[0] == 200
        assert fetched(path="assets/site.css")[0] == 200
        assert fetched(path="datasets/further.html")[0] == 404
        tiny.derive("further", QUERY, "derived")
        assert fetched()[1].count("<tr><th") == 4
        assert "derived.html" in fetched(path="datasets/further.html")[1]
        tiny.derive("further", QUERY, "nowhere")
        status, page = fetched()
        assert (status, page.count("<tr><th")) == (200, 4)
        assert ">refused</span>" in page
        config = tiny.root / "odfbuild.yaml"
        right = config.read_text()
        config.write_text("kind: [")
        status, page = fetched()
        assert status == 500
        assert page.startswith("error[E")
        config.write_text(right)
        assert fetched("evil.example:80")[0] == 403
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=120) == 0
