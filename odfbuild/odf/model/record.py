"""How objects of the protocol are declared.

`Record` is the class above them, `implied` says what an absent field means, the annotations give
the widths of numbers on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, dataclass_transform

from odfbuild.values import Value

U64 = Annotated[int, "u64"]
U32 = Annotated[int, "u32"]
I32 = Annotated[int, "i32"]
I16 = Annotated[int, "i16"]
Extra = Annotated[Mapping[str, Any], "open_map"]


def implied(*, default: Any) -> Any:
    """An optional field that means `default` when it is absent; it stays absent when written."""
    return field(default=None, metadata={"implied": default})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(implied,))
class Record(Value, kw_only=True, tag=True, tag_field="object"):
    """An object of the protocol: a frozen value whose fields are given by name."""
