"""Whether records with one schema can join a dataset that has another."""

from __future__ import annotations

import pyarrow as pa


def incompatibilities(committed: pa.Schema, new: pa.Schema) -> list[str]:
    """Differences that keep data with schema `new` out of a dataset, in words; empty: it fits.

    Columns must agree in number, order, name and type; encodings of the same type are equal, and a
    required column fits an optional one but not the other way round. Source: reference behaviour,
    schema compatibility of data slices.
    """
    differences = []
    old_names, new_names = committed.names, new.names
    differences += [f"column '{name}' is missing" for name in old_names if name not in new_names]
    differences += [f"column '{name}' is new" for name in new_names if name not in old_names]
    if not differences and old_names != new_names:
        differences.append(
            f"columns are in another order: {', '.join(new_names)} instead of {', '.join(old_names)}"
        )
    for name in old_names:
        if name not in new_names:
            continue
        old, found = committed.field(name), new.field(name)
        if not _same(old.type, found.type):
            differences.append(f"column '{name}' was {old.type}, is {found.type} now")
        elif found.nullable and not old.nullable:
            differences.append(f"column '{name}' was required, is optional now")
    return differences


def _same(old: pa.DataType, new: pa.DataType) -> bool:
    types = pa.types
    if old == new:
        return True
    for members in (
        (types.is_string, types.is_large_string, types.is_string_view),
        (types.is_binary, types.is_large_binary, types.is_binary_view),
    ):
        if any(test(old) for test in members) and any(test(new) for test in members):
            return True
    if types.is_list(old) or types.is_large_list(old):
        listed = types.is_list(new) or types.is_large_list(new)
        return bool(listed and _same(old.value_type, new.value_type))
    if types.is_struct(old) and types.is_struct(new):
        return [f.name for f in old] == [f.name for f in new] and all(
            _same(a.type, b.type) for a, b in zip(old, new, strict=True)
        )
    return False
