"""The quick reader gives what the complete one gives, or leaves the text to it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odfbuild.errors import ProjectError
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.yaml.plain import read_documents, read_plain
from odfbuild.project.yaml.source import read_completely

ROOT = Path(__file__).parents[2]
VALUES = (
    *("", "x", "12", "0x1F", "-1.5", ".Inf", "true", "null", "~", "2024-01-31", "a b", "a, b [c]"),
    *("a:b", "http://x/y#z", "a #b", "a: b", "a:", "-", "- b", "-x", "?", "? x", "#x", "=", "<<"),
    *("'q'", '"q"', "'it''s'", r'"a\n"', "'a' b", '"a" # c', "[]", "[a, 1]", "[a,b ]", "[a: 1]"),
    *("[a", "{}", "&a x", "*a", "!!str 1", "|", "|-", "|+", "|2", "| # c", ">", "%x", "@x", "`x`"),
    *("x  ", "é", "\u00a0", "x\ty", "...", "---", "x\u0085y", "a\ufeff"),
)
USUAL = ("x", "12", "-1.5", "true", "~", "a b, c", "a:b#c", "'q'", '"q"', "[]", "[a, 1 ]", "")
LINES = st.builds(
    lambda indent, dash, key, value: " " * indent + dash + key + value,
    st.sampled_from([0, 1, 2, 3, 4, 6]),
    st.sampled_from(["", "- ", "-  ", "- - "]),
    st.sampled_from(["", "a: ", "c-d:   ", "true: ", "'e': ", "12: ", "f : ", "a:"]),
    st.sampled_from(VALUES),
) | st.sampled_from(["", "   ", "---", "...", "# c", "  # c", "%YAML 1.2"])


@st.composite
def blocks(draw: st.DrawFn, column: int = 0, depth: int = 0) -> list[str]:
    """Lines of a mapping in block style whose keys stand in `column`."""
    pad, lines = " " * column, []
    for key in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)):
        kind = draw(st.sampled_from(["scalar", "scalar", "literal", "map", "list", "items"]))
        deeper = column + draw(st.sampled_from([1, 2, 4]))
        head = f"{pad}{key}:"
        if kind == "literal":
            shape = [" " * deeper + "x", "", " " * deeper + "  - y: z", ""]
            lines += [f"{head} {draw(st.sampled_from(['|', '|-']))}", shape[0]]
            lines += draw(st.lists(st.sampled_from(shape), max_size=3))
        elif kind == "map" and depth < 3:
            lines += [head, *draw(blocks(deeper, depth + 1))]
        elif kind in ("list", "items") and depth < 3:
            dash = " " * draw(st.sampled_from([column, deeper])) + "- "
            lines.append(head)
            for _ in range(draw(st.integers(1, 2))):
                first = [draw(st.sampled_from(USUAL[:-1]))]
                if kind == "items":
                    first = draw(blocks(len(dash), depth + 1))
                lines += [dash + first[0].strip(), *first[1:]]
        else:
            lines.append(f"{head} {draw(st.sampled_from(USUAL))}")
    return lines


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Plain documents, and such that are nearly plain."""
    lines = draw(blocks())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(lines) - 1))
        change = draw(st.sampled_from(["put in", "leave out", "move", "replace", "twice"]))
        line = lines[at]
        changed = {
            "put in": [line, draw(LINES)],
            "leave out": [],
            "move": [draw(st.sampled_from([" ", "  "])) + line],
            "replace": [line.partition(":")[0] + ": " + draw(st.sampled_from(VALUES))],
            "twice": [line, line],
        }
        lines[at : at + 1] = changed[change]
        lines = lines or [""]
    return draw(st.sampled_from(["", "", "---\n"])) + "\n".join([*lines, ""])


def complete(text: str) -> Any:
    try:
        return read_completely(text, "a.yaml")
    except ProjectError as error:
        return error


@settings(max_examples=600)
@given(texts() | texts().map(str.rstrip))
@example("a:\n- b: |\n   c\n\n    d\n\n  e: [f, 1]\ng:\n")
@example("a:\n  b: |\n    c\n   \n  d: e\n")
@example("---\na: 1\n---\nb: |-\n  x: y\n---\n")
def test_it_gives_what_the_complete_reader_gives_or_nothing(text: str) -> None:
    plain = read_plain(text)
    assert plain is None or repr(plain) == repr(complete(text))


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab: -\n#'\"|[],1.~\t"), max_size=30))
def test_so_it_does_for_any_text(text: str) -> None:
    plain = read_plain(text)
    assert plain is None or repr(plain) == repr(complete(text))


@pytest.mark.parametrize(
    "file",
    sorted(f for f in (ROOT / "example_project").rglob("*.yaml") if ".test." not in f.name),
    ids=lambda file: file.name,
)
def test_definitions_as_people_write_them_are_plain(file: Path) -> None:
    text = file.read_text()
    assert read_plain(text) == complete(text)


def test_canonical_definitions_are_plain() -> None:
    data = {
        "kind": "DatasetSnapshot",
        "content": {"metadata": [{"kind": "SetTransform", "query": "SELECT 1\nFROM `a`\n"}]},
        "keys": ["a", "b"],
        "number": 12,
    }
    assert read_plain(dump_yaml(data)) == [data]


def test_what_two_documents_share_is_not_shared() -> None:
    """Lines are remembered: a list in one text must not be that of another."""
    (first,), (second,) = (read_documents("a: [b]\n", "a.yaml") for _ in range(2))
    first["a"].append("c")
    assert second == {"a": ["b"]}
