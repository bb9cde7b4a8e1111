"""How objects of the protocol are declared.

`@record` makes the class, `implied` says what an absent field means, the annotations give the
widths of numbers on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from odfbuild.values import dataclass

U64 = Annotated[int, "u64"]
U32 = Annotated[int, "u32"]
I32 = Annotated[int, "i32"]
I16 = Annotated[int, "i16"]
Extra = Annotated[Mapping[str, Any], "open_map"]

T = TypeVar("T")


def implied(*, default: Any) -> Any:
    """An optional field that means `default` when it is absent; it stays absent when written."""
    return field(default=None, metadata={"implied": default})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(implied,))
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots; all fields are given by name."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
