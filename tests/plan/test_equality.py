"""Which queries say the same, told by words where these are enough."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odfbuild.odf.identity import DatasetAlias
from odfbuild.odf.model import SetTransform, SqlQueryStep, TransformInput, TransformSql
from odfbuild.plan.changes.equality import EventMatch, UncertainWords, compare, tokens, words

WORDS = ("select", "SELECT", "a", "ab", "a1", "1", "10L", "1e5", ".5", "1.", "_x", "é", "from")
LITERALS = ("'it''s'", '"it\'s"', "'a b'", "`a b`", "`a`", "r'x'", "R'x'", "x'1F'", "X'1f'", "''")
COMMENTS = ("--c\n", "/* c */", "/*+ hint */", "{# c #}", "'\\u0041'", "'A'", "group  by")
SIGNS = ("(", ")", ",", ".", "::", "<=", "<", "=", "{{", "}}", ";", "@v", ":n", "$1", "?", "||")
PIECES = st.sampled_from([*WORDS, *LITERALS, *COMMENTS, *SIGNS])
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", "\n  "]))).map(
    lambda found: "".join(piece + space for piece, space in found)
)


@given(TEXTS, TEXTS)
@example("select R'x'", "select r'x'")
@example("select 'A'", "select '\\u0041'")
@example("select 'it''s'", 'select "it\'s"')
@example("select 1L", "select 1 L")
@example("select a -- b", "select a")
@example("select a {# b #}", "select a")
def test_where_words_differ_tokens_do(one: str, other: str) -> None:
    try:
        differ = words(one) != words(other)
    except UncertainWords:
        return
    if differ:
        assert tokens(one) != tokens(other)


@given(TEXTS)
def test_white_space_between_words_is_no_word(text: str) -> None:
    try:
        assert words(text) == words(text.replace(" ", "\n "))
    except UncertainWords:
        return


def transform(query: str) -> SetTransform:
    return SetTransform(
        inputs=(TransformInput(dataset_ref=DatasetAlias.parse("a"), alias="a"),),
        transform=TransformSql(engine="spark", queries=(SqlQueryStep(query=query),)),
    )


@pytest.mark.parametrize(
    ("before", "after", "likeness"),
    [
        ("SELECT a FROM b", "SELECT a FROM b", EventMatch.SAME),
        ("SELECT a FROM b", "SELECT a\n  FROM b", EventMatch.COSMETIC),
        ("SELECT a FROM b", "SELECT a FROM b -- all", EventMatch.COSMETIC),
        ("SELECT a FROM b", "SELECT a /* c */ FROM b", EventMatch.COSMETIC),
        ("SELECT 'a'  , b", "SELECT 'a', b", EventMatch.COSMETIC),
        ("SELECT 'a b'", 'SELECT "a b"', EventMatch.COSMETIC),
        ("SELECT a FROM b", "SELECT A FROM b", EventMatch.DIFFERENT),
        ("SELECT a <= b", "SELECT a < b", EventMatch.DIFFERENT),
        ("SELECT 'a  b'", "SELECT 'a b'", EventMatch.DIFFERENT),
        ("SELECT a -- b", "SELECT a, b", EventMatch.DIFFERENT),
    ],
)
def test_queries_are_alike(before: str, after: str, likeness: EventMatch) -> None:
    assert compare(transform(before), transform(after)) is likeness


def test_another_word_is_told_without_the_tokens() -> None:
    code = (
        "import sys\nfrom tests.plan.test_equality import *\n"
        "loaded = 'sqlglot' in sys.modules\n"
        "compare(transform('SELECT a FROM b'), transform('SELECT a + 1 FROM b'))\n"
        "print(loaded, 'sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
