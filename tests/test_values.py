"""Our `dataclass` does what that of the standard library does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass as theirs
from dataclasses import field
from typing import Any

import pytest

from odfbuild.values import dataclass as ours


@ours(frozen=True, slots=True)
class Ours:
    """One of ours."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list)
    _hidden: int = field(default=0, repr=False, compare=False)


@theirs(frozen=True, slots=True)
class Theirs:
    """One of theirs."""

    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list)
    _hidden: int = field(default=0, repr=False, compare=False)


@ours(frozen=True, slots=True, kw_only=True)
class Named:
    """Fields by name only, and a property."""

    first: int
    second: tuple[int, ...] = ()

    @property
    def sum(self) -> int:
        return self.first + sum(self.second)


class Filled(Named):
    """A class below one of ours, with slots of its own."""

    __slots__ = ("third",)


BOTH: Any = pytest.mark.parametrize("cls", [Ours, Theirs])


@BOTH
def test_fields_are_filled_by_place_by_name_and_by_default(cls: Any) -> None:
    assert (cls(1).a, cls(1).b, cls(1).c) == (1, "b", [])
    assert (cls(1, "x", c=[2]).b, cls(1, "x", c=[2]).c) == ("x", [2])
    one, two = cls(1), cls(1)
    one.c.append(1)
    assert two.c == []


@BOTH
def test_what_is_missing_or_too_much_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'a'"):
        cls()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'd'"):
        cls(1, d=2)
    with pytest.raises(TypeError, match=r"takes from 2 to 5 positional arguments"):
        cls(1, "b", [], 0, 1)


def test_fields_by_name_are_not_taken_by_place() -> None:
    untyped: Any = Named
    with pytest.raises(TypeError, match=r"takes 1 positional argument"):
        untyped(1)
    assert Named(first=1, second=(2, 3)).sum == 6


@BOTH
def test_nothing_can_be_assigned_or_deleted(cls: Any) -> None:
    value = cls(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        value.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del value.a
    assert value.a == 1


@BOTH
def test_equal_by_the_fields_that_count_and_of_the_same_class(cls: Any) -> None:
    assert cls(1, _hidden=1) == cls(1, _hidden=2)
    assert cls(1) != cls(2)
    assert cls(1) != (1, "b", [], 0)
    assert repr(cls(1, _hidden=7)) == f"{cls.__name__}(a=1, b='b', c=[])"


def test_equal_values_are_one_key() -> None:
    assert len({Named(first=1), Named(first=1), Named(first=2)}) == 2


def test_a_subclass_keeps_fields_and_slots() -> None:
    value = Filled(first=1)
    assert (value.first, value.second) == (1, ())
    assert value != Named(first=1)
    assert hash(value) == hash(Named(first=1))
    assert not hasattr(value, "__dict__")


@BOTH
def test_the_tools_of_dataclasses_know_them(cls: Any) -> None:
    value = cls(1, c=[1])
    assert [each.name for each in dataclasses.fields(value)] == ["a", "b", "c", "_hidden"]
    assert dataclasses.replace(value, b="x") == cls(1, "x", [1])
    assert dataclasses.asdict(value) == {"a": 1, "b": "b", "c": [1], "_hidden": 0}
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert cls.__match_args__ == ("a", "b", "c", "_hidden")


def test_other_kinds_of_dataclasses_are_refused() -> None:
    with pytest.raises(TypeError, match="standard library"):
        ours(frozen=False, slots=True)
