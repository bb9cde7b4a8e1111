"""The text of a new definition, from the templates in `templates/new`.

What is known of the data comes in, YAML with comments comes out: which columns, which merge and
why is decided here, from values. Reads nothing but the templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from textwrap import wrap
from typing import Any

from odfbuild.api.authoring.new_database import DatabaseRoot
from odfbuild.api.authoring.new_kafka import TopicRoot
from odfbuild.ingest.fetch.database.address import keeps_slot
from odfbuild.ingest.sample import Sample
from odfbuild.odf.schema.ddl import quoted_name
from odfbuild.project.resources import template_text
from odfbuild.project.yaml.version_1_1 import text_as_yaml
from odfbuild.values import Value
from odfbuild.wording import count

KINDS = {
    "files": "a root that reads files of the project: CSV, TSV, JSON, NDJSON, Parquet, Excel, ODS",
    "url": "a root that checks an address for changes: https:, ftp:, file:, gs:, az:",
    "s3": "a root that checks an object of S3 for changes",
    "sftp": "a root that reads a file, or files of a pattern, of an SFTP server",
    "http": "a root that reads records of an HTTP API, page by page",
    "database": "a root that reads a table or a query: postgresql:, mysql:, sqlite:, duckdb:",
    "kafka": "a root that reads the messages of a topic of Kafka",
    "push": "a root that gets its data by `odfbuild ingest`",
    "derivative": "a query over other datasets",
    "matrix": "a template: one derivative for each value",
}
"""What can be begun, and what it is."""

_WIDTH = 88
# Reserved in Spark's ANSI mode, and some that lead a parser astray behind FROM.
_SQL_WORDS = """
all and anti any as authorization both case cast check collate column constraint create cross
current_date current_time current_timestamp current_user distinct else end escape except false
fetch filter for foreign from full grant group having in inner input intersect interval into is
join lateral leading left limit minus natural not null offset on only or order outer overlaps
primary references right select semi session_user some table then to trailing true union unique
unknown user using values when where window with
"""
_SQL_WORD = re.compile("|".join(_SQL_WORDS.split()), re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z0-9]+")


class Root(Value, kw_only=True):
    """A root to be begun.

    `source` is a pattern of files or an address, `read` the kind of read step, `sample` what files
    look like and `sampled` what they are called, `key` the columns that were asked for, `merge` one
    of `MERGES`, `name_pattern` finds the event time in names of files.
    """

    kind: str
    name: str
    source: str
    read: str
    merge: str
    packed: str | None = None
    convert: tuple[str, ...] = ()
    sample: Sample | None = None
    sampled: str = ""
    key: tuple[str, ...] = ()
    name_pattern: str | None = None
    description: str | None = None


class Input(Value):
    """A dataset that is read, and its own columns; `None`: not known before data is there."""

    name: str
    alias: str
    event_time: str
    columns: tuple[str, ...] | None


class Derived(Value, kw_only=True):
    """A derivative to be begun; of a template with the column `over` and its values."""

    name: str
    inputs: tuple[Input, ...]
    over: str | None = None
    values: tuple[str, ...] = ()
    numbers: bool = False
    description: str | None = None


def alias_of(name: str, taken: Sequence[str]) -> str:
    """A short name for an input, that SQL takes without quotes: from the last words of its own."""
    words = _WORDS.findall(name.lower()) or ["input"]
    for length in range(1, len(words) + 1):
        alias = "_".join(words[-length:])
        # Two letters may be a country, and some of these mean something else in YAML: no, on.
        if alias[0].isdigit() or len(alias) < 3 or _SQL_WORD.fullmatch(alias) or alias in taken:
            continue
        return alias
    return f"{words[-1] if words[-1][0].isalpha() else 'input'}_{len(taken) + 1}"


def root_text(root: Root, schema: str) -> str:
    """The YAML of a root; `schema` is its first line, which says where its JSON Schema is."""
    guess = root.sample.guess if root.sample else None
    columns = guess.columns if guess else ()
    key = root.key or (guess.key or guess.state_key if guess else ())
    event_time = guess.event_time if guess else None
    return _render(
        root.kind if root.kind not in ("s3", "sftp", "http") else "url",
        schema=schema,
        name=text_as_yaml(root.name),
        source=root.source,
        is_store=root.source.startswith(("s3:", "gs:", "az:")),
        name_pattern=root.name_pattern if event_time is None else None,
        packed=root.packed,
        convert=root.convert,
        read=root.read,
        separator=root.sample.form.separator if root.sample else ",",
        header=root.sample is None or root.sample.header,
        null=guess.null if guess else None,
        columns=[column.ddl for column in columns],
        columns_from=wrap(f"Check these types: {_looked_at(root)} had them.", _WIDTH),
        merge=root.merge.capitalize(),
        merge_because=_merge_because(root, key),
        key=key if root.merge != "append" else (),
        event_time=event_time if event_time != "event_time" else None,
        description=root.description or f"Records of {root.source or 'whoever ingests them'}",
    )


def database_text(root: DatabaseRoot, schema: str) -> str:
    """The YAML of a root that reads a database."""
    return _render(
        "database",
        schema=schema,
        name=text_as_yaml(root.name),
        url=root.url,
        cursor=root.cursor,
        changes=root.reads_changes,
        slot=keeps_slot(root.url),
        columns=[f"{quoted_name(name)} {ddl}" for name, ddl in root.columns],
        kind=root.kind,
        key=root.key,
        has_key_of_its_own=root.has_key_of_its_own,
        event_time=root.event_time if root.event_time != "event_time" else None,
        description=root.description or f"Rows of {root.called}",
    )


def topic_text(root: TopicRoot, schema: str) -> str:
    """The YAML of a root that reads a topic."""
    return _render(
        "kafka",
        schema=schema,
        name=text_as_yaml(root.name),
        url=root.url,
        columns=root.columns,
        kind=root.kind,
        key=root.key,
        looked_at=root.looked_at,
        event_time=root.event_time if root.event_time != "event_time" else None,
        description=root.description or f"Messages of {root.called}",
    )


def _looked_at(root: Root) -> str:
    records = root.sample.guess.records if root.sample else 0
    return f"the {count(records, 'record')} of {root.sampled}"


def _merge_because(root: Root, key: Sequence[str]) -> list[str]:
    if root.merge == "append":
        why = "Every record is kept, including duplicates"
        looked_at_some = root.sample is not None and root.sample.guess.records > 0
        if looked_at_some and not key:
            return wrap(f"{why}: no likely key in {_looked_at(root)}.", _WIDTH)
        return [f"{why}."]
    what = {
        "ledger": "A record with a new key is appended; records with a known key are ignored.",
        "snapshot": "Data is the whole current state: differences to the last state are appended.",
    }[root.merge]
    if root.key:
        return [what]
    guess = root.sample.guess if root.sample else None
    if guess is not None and not guess.key:
        why = "it is unique in each file, and most records are in the next file again"
        return [what, *wrap(f"Check this key: in {_looked_at(root)} {why}.", _WIDTH)]
    return [what, *wrap(f"Check this key: it is unique in {_looked_at(root)}.", _WIDTH)]


def derived_text(derived: Derived, schema: str, query_file: str | None = None) -> str:
    """The YAML of a derivative, or of a template of derivatives.

    With a `query_file`, the query is in the file of that name beside it.
    """
    is_matrix = derived.over is not None
    name = text_as_yaml(derived.name)
    if is_matrix:
        # The value may be a number, and so may all of the name then.
        name = f"{derived.name}.{{{{ {derived.over} | lower }}}}"
        name = name if any(map(str.isalpha, derived.name)) else f'"{name}"'
    read = " and ".join(each.name for each in derived.inputs)
    which = f" where {derived.over} is {{{{ {derived.over} }}}}" if is_matrix else ""
    return _render(
        "matrix" if is_matrix else "derivative",
        schema=schema,
        name=name,
        over=derived.over,
        values=derived.values,
        inputs=derived.inputs,
        query=_query(derived),
        query_file=query_file,
        description=derived.description or f"Records of {read}{which}",
    )


def query_text(derived: Derived) -> str:
    """The query of a derivative, or of a template of derivatives, as a file of its own."""
    return "".join(f"{line}\n" for line in _query(derived))


def _query(derived: Derived) -> list[str]:
    inputs = derived.inputs
    lines = []
    if any(each.columns is None for each in inputs):
        lines += ["-- The columns are unknown until there is data: name those you need."]
    if len(inputs) > 1:
        lines += [
            "-- The records of all inputs, with the columns that all of them have.",
            "-- To combine them side by side, write a JOIN.",
        ]
    shared = _shared(inputs)
    for each in inputs:
        if each is not inputs[0]:
            lines.append("UNION ALL")
        lines += _select(each, shared)
        if derived.over is not None:
            value = f"{{{{ {derived.over} }}}}"
            quote = "" if derived.numbers else "'"
            lines.append(f"WHERE {_sql_name(derived.over)} = {quote}{value}{quote}")
    return lines


def _shared(inputs: Sequence[Input]) -> list[str]:
    """The columns that all inputs have, besides the event time, in the order of the first."""
    known = [each.columns or () for each in inputs]
    times = {each.event_time for each in inputs}
    return [c for c in known[0] if c not in times and all(c in columns for columns in known)]


def _select(source: Input, columns: Sequence[str]) -> list[str]:
    time = _sql_name(source.event_time)
    items = [time if time == "event_time" else f"{time} AS event_time", *map(_sql_name, columns)]
    if len(items) == 1:
        return [f"SELECT {items[0]}", f"FROM {source.alias}"]
    commas = [f"  {item}," for item in items[:-1]]
    return ["SELECT", *commas, f"  {items[-1]}", f"FROM {source.alias}"]


def _sql_name(column: str) -> str:
    return f"`{column}`" if _SQL_WORD.fullmatch(column) else quoted_name(column)


def _render(template: str, **values: Any) -> str:
    text: str = _environment().get_template(f"new/{template}.yaml.j2").render(values)
    return text


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["yaml"] = text_as_yaml
    return environment
