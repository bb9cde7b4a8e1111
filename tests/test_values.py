"""Values are frozen, and the standard library takes them for dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import pprint
from dataclasses import field
from typing import Any

import pytest

from odfbuild.values import Value


class Ours(Value):
    """Fields by place or by name."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list, metadata={"about": "numbers"})


class Named(Value, kw_only=True):
    """Fields by name only, in any order, and a property."""

    second: tuple[int, ...] = ()
    first: int

    @property
    def sum(self) -> int:
        return self.first + sum(self.second)


class Below(Named):
    """With another field."""

    third: int = field(default=3, metadata={"about": "the third"})


def test_fields_are_filled_by_place_by_name_and_by_default() -> None:
    assert (Ours(1).a, Ours(1).b, Ours(1).c) == (1, "b", [])
    assert (Ours(1, "x", c=[2]).b, Ours(1, "x", c=[2]).c) == ("x", [2])
    one, two = Ours(1), Ours(1)
    one.c.append(1)
    assert two.c == []


def test_what_is_missing_or_too_much_is_refused() -> None:
    untyped: Any = Ours
    for given, named in (((), {}), ((1,), {"d": 2}), ((1, "b", [], 0), {})):
        with pytest.raises(TypeError):
            untyped(*given, **named)


@pytest.mark.parametrize("cls", [Named, Below])
def test_fields_by_name_are_not_taken_by_place_also_in_classes_below(cls: Any) -> None:
    with pytest.raises(TypeError):
        cls(1)
    assert cls(first=1, second=(2, 3)).sum == 6


def test_nothing_can_be_assigned_or_deleted() -> None:
    value: Any = Ours(1)
    with pytest.raises(AttributeError):
        value.a = 2
    with pytest.raises(AttributeError):
        del value.a
    with pytest.raises(AttributeError):
        value.other = 1
    assert value.a == 1


def test_equal_by_all_fields_and_of_the_same_class() -> None:
    assert Ours(1) == Ours(1)
    assert Ours(1) != Ours(2)
    assert Below(first=1) != Named(first=1)
    assert repr(Ours(1)) == "Ours(a=1, b='b', c=[])"
    assert len({Named(first=1), Named(first=1), Named(first=2)}) == 2


def test_the_tools_of_dataclasses_know_them() -> None:
    value = Ours(1, c=[1])
    assert dataclasses.is_dataclass(value)
    assert [each.name for each in dataclasses.fields(value)] == ["a", "b", "c"]
    assert [each.default for each in dataclasses.fields(Ours)][1] == "b"
    assert dataclasses.fields(Ours)[2].metadata == {"about": "numbers"}
    assert dataclasses.replace(value, b="x") == Ours(1, "x", [1])
    assert dataclasses.replace(Below(first=1), third=4) == Below(first=1, third=4)
    assert dataclasses.asdict(value) == {"a": 1, "b": "b", "c": [1]}
    assert {each.name for each in dataclasses.fields(Below)} == {"first", "second", "third"}
    assert Ours.__match_args__ == ("a", "b", "c")


def test_pprint_shows_what_repr_gives() -> None:
    value = Ours(1, "word " * 20)
    assert pprint.pformat([value]) == f"[{value!r}]"


def test_they_can_be_copied_and_pickled() -> None:
    for value in (Ours(1, c=[1]), Below(first=1)):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value
