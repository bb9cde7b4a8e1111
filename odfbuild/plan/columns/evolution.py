"""Effects of a changed query or source on the columns of a dataset, before anything runs.

New optional columns pass; a column that goes, moves or changes its type breaks readers and is
refused, with the line that does it. What only the engine can tell is left to it, and said so.
Source: Open Data Fabric, "Schema Evolution", "Query Evolution".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.errors import Location, PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    DatasetSnapshot,
    ReadStep,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.schema import arrow
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.plan.model import ColumnEffect
from odfbuild.plan.places import Path, Place, path_of
from odfbuild.sql.columns.of_query import Column, Columns, Result, columns_of, result_of
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.schema.evolution import SchemaGrowth

Source = SetPollingSource | AddPushSource


class Evolution(Value):
    """`columns` are those of the dataset afterwards, `None` when they cannot be told.

    With a `refusal`, `broken` are the columns that readers would miss or find of another type.
    """

    effect: ColumnEffect | None = None
    columns: Columns | None = None
    refusal: PlanError | None = None
    broken: tuple[str, ...] = ()


UNCHANGED = Evolution()
"""The evolution of a dataset whose columns nothing touches."""
_UNKNOWN = Evolution(effect=ColumnEffect(known=False))


def committed_columns(projection: Projection) -> Columns | None:
    """The columns of a dataset as it is; `None` when it has no schema yet."""
    if projection.schema is None:
        return None
    from odfbuild.odf.schema.arrow_form import read_schema

    return columns_of(read_schema(projection.schema))


def source_evolution(
    snapshot: DatasetSnapshot,
    before: Source | None,
    after: Source,
    projection: Projection,
    place: Place,
) -> Evolution:
    """What a source that replaces another one (`None`: none is active) does to a root."""
    result = result_of_source(after)
    if result is None or projection.schema is None:
        return _UNKNOWN
    old = result_of_source(before) if before is not None else None
    given = {column.name: column.type for column in old.columns} if old else {}
    changed = [each.name for each in result.columns if given.get(each.name) != each.type]
    vocab = vocabulary_of(projection.vocab)
    growth = _growth(result.columns, projection, vocab, is_root=True, new_units=changed)
    if growth.problems:
        where = _place_in_source(snapshot, before, after, place)
        names = _new_names(old, result, growth)
        return Evolution(
            refusal=_breaking(snapshot, growth, names, where, projection), broken=growth.broken
        )
    effect = _effect(old, result, growth)
    if before is None or _without_columns(before) != _without_columns(after):
        effect = replace(effect, records=True)
    return Evolution(effect, columns_of(growth.schema))


def query_evolution(
    snapshot: DatasetSnapshot,
    before: SetTransform | None,
    after: SetTransform,
    projection: Projection,
    inputs: Mapping[str, Columns | None],
    place: Place,
) -> Evolution:
    """What a query over `inputs` (by alias) does to a derivative; `before` is the committed one."""
    result = result_of(after.transform, inputs)
    if result is None or projection.schema is None:
        return _UNKNOWN
    growth = _growth(result.columns, projection, vocabulary_of(projection.vocab), is_root=False)
    old = result_of(before.transform, inputs) if before is not None else None
    if growth.problems:
        path = (*path_of(snapshot, after), "transform")
        old_query = before.transform if before else None
        where = _changed_line(old_query, after.transform, path, place)
        names = _new_names(old, result, growth)
        return Evolution(
            refusal=_breaking(snapshot, growth, names, where, projection), broken=growth.broken
        )
    return Evolution(_effect(old, result, growth), columns_of(growth.schema))


# --- Columns ---


def result_of_source(source: Source, *, meanings: bool = True) -> Result | None:
    """The columns that a source gives, before system columns; `None` when the data decide."""
    declared = _declared(source.read)
    if declared is None:
        return None
    if source.preprocess is not None:
        return result_of(source.preprocess, {"input": columns_of(declared)}, meanings=meanings)
    own = tuple(
        replace(column, nullable=field.nullable)
        for column, field in zip(columns_of(declared), declared, strict=True)
    )
    return Result(own, "")


def source_columns(read: ReadStep) -> Columns | None:
    """What a source declares that it reads; `None` when the data decide."""
    declared = _declared(read)
    return None if declared is None else columns_of(declared)


def _declared(read: ReadStep) -> arrow.Schema | None:
    if read.schema is not None:
        from odfbuild.odf.schema.arrow_form import arrow_form

        return arrow_form(read.schema)
    if not read.ddl_schema:
        return None
    from odfbuild.odf.schema.ddl import read_ddl

    return read_ddl(read.ddl_schema)


def _growth(
    columns: Columns,
    projection: Projection,
    vocab: Vocabulary,
    *,
    is_root: bool,
    new_units: Sequence[str] = (),
) -> SchemaGrowth:
    """The committed schema joined by `columns`; what is not known of one is taken as committed.

    So is how many digits times have, but for those in `new_units`.
    """

    from odfbuild.odf.schema.arrow_form import read_schema
    from odfbuild.odf.schema.evolution import grow

    if projection.schema is None:
        raise AssertionError("only a schema that exists can grow")
    committed = read_schema(projection.schema)
    given = {column.name: column for column in columns}
    leading = [vocab.offset, vocab.operation_type, vocab.system_time]
    if is_root or vocab.event_time in given:
        leading.append(vocab.event_time)
    own = [Column(n, None) for n in leading if n in committed.names and n not in given]
    # System columns are required whatever the source says.
    own += [replace(given[n], nullable=None) for n in leading if n in given]
    own.sort(key=lambda column: leading.index(column.name))
    rest = [column for column in columns if column.name not in leading]
    fields = [_field(each, committed, each.name in new_units) for each in (*own, *rest)]
    return grow(committed, arrow.schema(fields))


def _field(column: Column, committed: arrow.Schema, new_unit: bool) -> arrow.Field:
    if column.name not in committed.names:
        return arrow.Field(
            column.name, column.type or arrow.Type("null"), column.nullable is not False
        )
    old = committed.field(column.name)
    nullable = old.nullable if column.nullable is None else column.nullable
    kind = column.type or old.type
    if kind.name == old.type.name == "timestamp" and not new_unit:
        kind = old.type
    return arrow.Field(column.name, _described_as(kind, old.type), nullable, old.metadata)


def _described_as(kind: arrow.Type, old: arrow.Type) -> arrow.Type:
    """`kind` with the attributes that members have in `old`: those are compared on their own."""
    if kind.name != "struct" or old.name != "struct":
        return kind
    own = {each.name: each for each in old.fields}
    fields = tuple(
        replace(
            each,
            type=_described_as(each.type, own[each.name].type),
            metadata=own[each.name].metadata,
        )
        if each.name in own
        else each
        for each in kind.fields
    )
    return replace(kind, fields=fields)


def _effect(old: Result | None, new: Result, growth: SchemaGrowth) -> ColumnEffect:
    added = growth.added
    if old is None:
        return ColumnEffect(added=added)
    before = {column.name: column for column in old.columns}
    kept = [c for c in new.columns if c.name in before and c.name not in added]
    # New members of a structure leave its other values as they were.
    declared = not (old.records or new.records)
    same = [
        c.name
        for c in kept
        if c.name in growth.grown and (declared or c.expression == before[c.name].expression)
    ]
    changed = [c.name for c in kept if c != before[c.name] and c.name not in same]
    return ColumnEffect(added=added, changed=tuple(changed), records=old.records != new.records)


def _new_names(old: Result | None, new: Result, growth: SchemaGrowth) -> dict[str, str]:
    """New names by the old ones of columns that are the same but for their names."""
    if old is None or len(old.columns) != len(new.columns):
        return {}
    return {
        one.name: other.name
        for one, other in zip(old.columns, new.columns, strict=True)
        if one.name in growth.broken
        and other.name in growth.added
        and one.type == other.type
        # What a source declares is no expression, and stands in its place.
        and (one.expression == other.expression or not (old.records or new.records))
    }


def _without_columns(source: Source) -> Source:
    """The source without what says which columns it gives."""
    read = replace(source.read, schema=None, ddl_schema=None)
    return replace(source, read=read, preprocess=None)


# --- Refusals ---


def _breaking(
    snapshot: DatasetSnapshot,
    growth: SchemaGrowth,
    new_names: Mapping[str, str],
    place: Location,
    projection: Projection,
) -> PlanError:
    name = snapshot.name
    event_time = vocabulary_of(projection.vocab).event_time
    code, problem = "E0314", "columns of existing records would be removed or changed"
    ways = [
        _beside(snapshot, growth, new_names),
        f"give the result a new name, such as '{name}.v2': it starts a new history, "
        "and the old dataset stays",
    ]
    again = f"`odfbuild reset {name} --schema`"
    if f"column '{event_time}' is missing" in growth.problems:
        # No new name and no second run can give records that have no time.
        code, problem = "E0515", f"the result has no column '{event_time}'"
        ways = [f"select {event_time}: every record needs the time at which its event happened"]
    elif snapshot.kind is DatasetKind.Derivative:
        ways.append(f"rebuild it from the start: --allow rebuild:{name}+")
    elif projection.records:
        ways.append(
            f"fetch all records again ({again}): data that the source no longer offers is lost"
        )
    else:
        problem = "its committed schema has other columns, but no records"
        ways[0] = f"reset it to its definition, including the schema ({again})"
    return PlanError(
        f"'{name}' cannot be changed: {problem}",
        code=code,
        location=place,
        notes=growth.problems,
        help="; or ".join(ways),
        dataset=str(name),
    )


def _beside(snapshot: DatasetSnapshot, growth: SchemaGrowth, new_names: Mapping[str, str]) -> str:
    """How to add new columns beside those that there are, so that readers go on as before."""
    from odfbuild.odf.schema.ddl import ddl_of_both, quoted_name

    is_root = snapshot.kind is DatasetKind.Root
    ways = []
    for column, old, new in growth.wider:
        before, after = ddl_of_both(old, new)
        own, wide = quoted_name(column), quoted_name(f"{column}_wide")
        value = own if is_root else "..."
        ways.append(
            f"keep '{column}' as {before} and add a column that is {after}"
            f"{', by a query in `preprocess`' if is_root else ''}: "
            f"`TRY_CAST({value} AS {before}) AS {own}, {value} AS {wide}`"
        )
    ways += [f"keep '{old}' and add '{new}' with the same values" for old, new in new_names.items()]
    return ", and ".join(ways) or "keep these columns as they are and add new ones"


def _place_in_source(
    snapshot: DatasetSnapshot, before: Source | None, after: Source, place: Place
) -> Location:
    path = path_of(snapshot, after)
    same_columns = before is not None and _declared_text(before) == _declared_text(after)
    if after.preprocess is not None and (before is None or same_columns):
        old = before.preprocess if before else None
        return _changed_line(old, after.preprocess, (*path, "preprocess"), place)
    old_columns = _declared_text(before) if before else ()
    texts = _declared_text(after)
    index = next((i for i, text in enumerate(texts) if text not in old_columns), None)
    lists: tuple[Path, ...] = (("schema", "fields"), ("ddlSchema",), ("schema",))
    read = (*path, "read")
    return place.of(
        *((*read, *each, index) for each in lists if index is not None),
        *((*read, *each) for each in lists),
    )


def _declared_text(source: Source) -> tuple[object, ...]:
    read = source.read
    return read.schema.fields if read.schema is not None else tuple(read.ddl_schema or ())


def _changed_line(
    before: TransformSql | None, after: TransformSql, path: Path, place: Place
) -> Location:
    """The first line in which a transformation differs from the one before; else its first."""
    old = before.queries or () if before is not None else ()
    for index, step in enumerate(after.queries or ()):
        line = _first_difference(old[index] if index < len(old) else None, step)
        if line is not None:
            return place.in_query(path, index, line)
    return place.in_query(path, 0, 1)


def _first_difference(before: SqlQueryStep | None, after: SqlQueryStep) -> int | None:
    if before is None:
        return 1
    old, new = before.query.splitlines(), after.query.splitlines()
    for number, line in enumerate(new):
        if number >= len(old) or line.split() != old[number].split():
            return number + 1
    return len(new) if len(new) < len(old) else None
