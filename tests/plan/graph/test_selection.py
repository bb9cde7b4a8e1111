"""dbt's selection grammar, over a graph that fits on a line: a, b → c → d → e; b → f."""

from __future__ import annotations

import pytest

from odfbuild.errors import GraphError
from odfbuild.plan.graph.selection import Selectable, Selection, labelled, paths_of, select

_INPUTS = {"c": ("a", "b"), "d": ("c",), "e": ("d",), "f": ("b",)}
_FILES = {"a": "roots/a.yaml", "b": "roots/b.yaml", "c": "joins/c.yaml.j2"}
_CATALOGUE = Selectable(
    names="abcdef",
    inputs=_INPUTS,
    selectors={
        "sources": "path:roots",
        "daily": "selector:sources tag:daily",
        "loop": "selector:pool",
        "pool": "a selector:loop",
    },
    methods={
        "name": labelled("name", {name: (name,) for name in "abcdef"}),
        "tag": labelled("tag", {"a": ("daily",), "c": ("daily", "slow"), "e": ("slow",)}),
        "path": labelled("path", {name: paths_of(file) for name, file in _FILES.items()}),
        "state": labelled("state", {"a": ("new",)}, ("new", "modified")),
    },
)


def _select(*expressions: str, exclude: tuple[str, ...] = ()) -> str:
    found = select(_CATALOGUE, Selection(select=expressions, exclude=exclude))
    return "".join(sorted(found))


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("c", "c"),
        ("C", "c"),
        ("+c", "abc"),
        ("c+", "cde"),
        ("+c+", "abcde"),
        ("c+1", "cd"),
        ("1+d", "cd"),
        ("2+e+0", "cde"),
        ("@f", "bf"),
        ("@a", "abcde"),
        ("a f", "af"),
        ("+d,b+", "bcd"),
        ("b+,tag:slow a", "ace"),
        ("*", "abcdef"),
        ("[ab]", "ab"),
        ("tag:da*", "ac"),
        ("tag:slow+", "cde"),
        ("path:roots", "ab"),
        ("path:roots/*.yaml", "ab"),
        ("roots/a.yaml+1", "ac"),
        ("selector:sources", "ab"),
        ("selector:sources,a", "a"),
        ("selector:daily", "abc"),
        ("selector:sources+1", "abcf"),
        ("state:modified", ""),
        ("state:new+", "acde"),
    ],
)
def test_an_expression_selects_what_dbt_would(expression: str, names: str) -> None:
    assert _select(expression) == names


def test_repeated_options_add_up_and_exclusion_comes_last() -> None:
    assert _select("c+", "f") == "cdef"
    assert _select("c+", "f", exclude=("d+",)) == "cf"
    assert _select(exclude=("+c", "f")) == "de"


@pytest.mark.parametrize(
    ("expression", "message", "help_"),
    [
        ("g+", "no dataset 'g'", "odfbuild ls"),
        ("tag:dayly", "no dataset has tag 'dayly'", "did you mean 'daily'?"),
        ("state:modfied", "'modfied' is no state", "did you mean 'modified'?"),
        ("state:x", "'x' is no state", "it can be: new, modified"),
        ("tags:daily", "no selection method 'tags'", "did you mean 'tag'?"),
        ("selector:source", "no selector 'source'", "did you mean 'sources'?"),
        ("selector:loop", "refers to itself: loop → pool → loop", "odfbuild.yaml"),
        ("a,,b", "'' in 'a,,b' is not a selection", "+name"),
        ("@a+", "'@a+' is not a selection", "+name"),
        ("a+b", "'a+b' is not a selection", "+name"),
    ],
)
def test_a_wrong_selection_says_what_was_meant(expression: str, message: str, help_: str) -> None:
    with pytest.raises(GraphError) as caught:
        _select(expression)
    assert message in caught.value.message
    assert help_ in (caught.value.help or "")
    assert caught.value.exit_code == 64
