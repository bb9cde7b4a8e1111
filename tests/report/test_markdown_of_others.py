"""Nothing that a project says is read as Markdown in a comment."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import markdown_it
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.report.forms.markdown import code, escaped, fenced, marker, sentence

REPORT = Path(__file__).parents[2] / "odfbuild" / "report"

TEXTS = st.text(alphabet="ab1 `|*_#<>[]()!~&\\-=+.:/@\n\r\t\u2028$\"'", max_size=30)


def html(text: str) -> str:
    """What a reader of Markdown with tables makes of a text."""
    return str(markdown_it.MarkdownIt("commonmark").enable("table").render(text))


def said(page: str) -> str:
    """The words that a page shows."""
    return " ".join(unescape(re.sub("<[^>]*>", "", page)).split())


def flat(text: str) -> str:
    return " ".join(text.split())


@given(TEXTS)
def test_escaped_text_shows_as_it_is_in_a_cell(text: str) -> None:
    page = html(f"| a |\n| --- |\n| x{escaped(text)}x |\n")
    assert set(re.findall("</?([a-z0-9]+)", page)) <= {"table", "thead", "tbody", "tr", "th", "td"}
    assert said(page) == flat(f"a x{text}x")


@given(TEXTS)
def test_code_shows_as_it_is_in_a_cell(text: str) -> None:
    page = html(f"| a |\n| --- |\n| {code(text)} |\n")
    allowed = {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert set(re.findall("</?([a-z0-9]+)", page)) <= allowed
    assert said(page) == flat(f"a {text}")


@given(TEXTS)
def test_a_sentence_has_nothing_but_code(text: str) -> None:
    assert set(re.findall("</?([a-z0-9]+)", html(f"- x {sentence(text)}"))) <= {
        "ul",
        "li",
        "code",
    }


@given(st.lists(TEXTS, max_size=4))
def test_a_block_of_code_ends_where_it_ends(lines: list[str]) -> None:
    page = html("\n".join([*fenced("text", lines), "end"]))
    assert page.startswith('<pre><code class="language-text">')
    assert page.endswith("</code></pre>\n<p>end</p>\n")
    assert page.count("<pre>") == 1


@given(TEXTS, st.none() | TEXTS)
def test_the_hidden_line_is_one_line_and_hides_all(project: str, env: str | None) -> None:
    line = marker(project, env, "data")
    assert len(line.splitlines()) == 1
    assert line.index("-->") == len(line) - 3


def test_nobody_is_notified_and_no_address_becomes_a_link() -> None:
    shown = escaped("ask @everyone, see https://evil.example or www.evil.example")
    assert "@everyone" not in shown
    assert "https://" not in shown
    assert "www.evil" not in shown


def test_no_report_puts_text_between_backticks_by_itself() -> None:
    """`code` does, which knows what stands in the text."""
    for file in REPORT.rglob("*.py"):
        text = file.read_text("utf-8")
        if "forms.markdown" in text or file.name == "markdown.py":
            assert not re.search(r'f"[^"\n]*`\{', text), file
