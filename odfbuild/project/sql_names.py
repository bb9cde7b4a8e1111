"""Names of inputs in SQL: a query may call `order-lines` also `order_lines`.

Names of datasets have `-` and `.`, but no `_`, and SQL takes only `_` without quotes. Where a query
reads from such a name, and nothing of that very name is there, the input without an alias gets it
as its alias. So the chain says what the query means, and other programs read it the same.
"""

from __future__ import annotations

import re
from collections import Counter

from msgspec.structs import replace

from odfbuild.odf.identity import DatasetAlias, identifier_of
from odfbuild.odf.model import DatasetSnapshot, SetTransform, TransformInput, TransformSql

_WORD = re.compile(r"\w+")


def with_sql_names(snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """The definition, with aliases for inputs that its queries call by their names in SQL."""
    events = tuple(
        _named(each) if isinstance(each, SetTransform) else each for each in snapshot.metadata
    )
    same = all(one is other for one, other in zip(events, snapshot.metadata, strict=True))
    return snapshot if same else replace(snapshot, metadata=events)


def _named(event: SetTransform) -> SetTransform:
    possible = _possible(event.inputs)
    if not possible:
        return event
    texts = _texts(event.transform)
    words = {word.lower() for text in texts for word in _WORD.findall(text)}
    if words.isdisjoint(possible):  # most queries: nothing is parsed
        return event
    taken = {each.alias.lower() for each in event.inputs if each.alias is not None}
    taken |= {each.alias.lower() for each in event.transform.queries or () if each.alias}
    read = _tables(texts) - taken
    aliases = {possible[name]: name for name in read if name in possible}
    # What a query calls by both names can have only one: that of its dataset stays.
    aliases = {index: name for index, name in aliases.items() if _is_free(event, index, read)}
    if not aliases:
        return event
    inputs = tuple(
        replace(each, alias=identifier_of(str(each.dataset_ref))) if index in aliases else each
        for index, each in enumerate(event.inputs)
    )
    return replace(event, inputs=inputs)


def _is_free(event: SetTransform, index: int, read: set[str]) -> bool:
    return str(event.inputs[index].dataset_ref).lower() not in read


def _possible(inputs: tuple[TransformInput, ...]) -> dict[str, int]:
    """Places of inputs by their names in SQL, where each stands for one of them only."""
    found = [
        (identifier_of(str(each.dataset_ref)).lower(), index)
        for index, each in enumerate(inputs)
        if each.alias is None and isinstance(each.dataset_ref, DatasetAlias)
    ]
    times = Counter(name for name, _ in found)
    return {
        name: index
        for name, index in found
        if times[name] == 1 and name != str(inputs[index].dataset_ref).lower()
    }


def _texts(transform: TransformSql) -> list[str]:
    own = [transform.query] if transform.query is not None else []
    return [*own, *(step.query for step in transform.queries or ())]


def _tables(texts: list[str]) -> set[str]:
    """Names in lower case that queries read from; none of a query that is not understood."""
    from odfbuild.sql.parsed import tables_in

    return {name for text in texts for name in tables_in(text)}
