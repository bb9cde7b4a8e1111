"""Names of the files of a dataset, and how values of partition keys are written into them.

kartothek 5.3 leaves `/` in values as it is, and then reads a part of the value only. Names written
here have `%2F` instead, which kartothek reads rightly; both are read.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from odfbuild.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

INDICES = "indices"
OWN = "_odfbuild"
"""The folder of our own notes below the dataset's; kartothek leaves it alone."""
DATA_SUFFIX = ".parquet"
INDEX_SUFFIX = ".by-dataset-index.parquet"
FORMS = ("json", "msgpack.zstd")
"""Forms of the metadata file, the one that counts where both are there first."""

_UUID = re.compile(r"[a-zA-Z0-9+\-_]+")
_OUTSIDE = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")
_FILE = re.compile(r"[0-9a-zA-Z`!\"#$%&'()+,\-.<=>?@\[\]^_{}~/ ]+")
_ALLOWED = bytes(each for each in range(128) if _FILE.fullmatch(chr(each)))


def checked_uuid(uuid: str) -> str:
    """The name of a dataset; `TableError` where kartothek does not allow it."""
    return _checked(uuid, "name of a kartothek dataset")


def checked_table(table: str) -> str:
    """The name of a table; it is a folder beside `indices`."""
    if table in (INDICES, OWN):
        raise _wrong_name(table, "name of a table of a kartothek dataset")
    return _checked(table, "name of a table of a kartothek dataset")


def _checked(name: str, what: str) -> str:
    if not _UUID.fullmatch(name):
        raise _wrong_name(name, what)
    return name


def _wrong_name(name: str, what: str) -> TableError:
    return TableError(
        f"{name!r} cannot be the {what}",
        code="E1331",
        notes=(f"it may contain letters, digits, +, - and _ only, and not be {INDICES} or {OWN}",),
        help="use another name; a published table takes it from `name` of its entry in `tables:`",
    )


def uuid_of(dataset: str) -> str:
    """The name that a dataset has in kartothek, which has no dots in names."""
    return checked_uuid(dataset.replace(".", "_"))


def table_of(name: str) -> str:
    """The name that a table of a group has in kartothek."""
    return checked_table(name.replace(".", "_"))


def checked_file(name: str) -> str:
    """A name that metadata gives to a file; it must not lead out of the place."""
    if _OUTSIDE.search(name) or not _FILE.fullmatch(name):
        raise TableError(
            f"the metadata names the file {name!r}, which no kartothek dataset can have",
            code="E1332",
            notes=("a name has no empty component, no `.` or `..`, and ASCII characters only",),
            help="restore the metadata file, or ask who writes the dataset",
        )
    return name


def check_files(names: Sequence[str]) -> None:
    """Check many names as `checked_file` does, in one look at all of them."""
    text = "/" + "/\n/".join(names) + "/"
    leads_out = any(each in text for each in ("//", "/./", "/../"))
    rest = text.encode(errors="surrogatepass").translate(None, _ALLOWED)
    if leads_out or rest != b"\n" * (len(names) - 1):
        for each in names:
            checked_file(each)


def metadata_file(uuid: str, form: str = FORMS[0]) -> str:
    """The one file whose replacement commits."""
    return f"{uuid}.by-dataset-metadata.{form}"


def schema_file(uuid: str, table: str) -> str:
    """The empty Parquet file that has the schema of a table."""
    return f"{uuid}/{table}/_common_metadata"


def data_file(uuid: str, table: str, label: str) -> str:
    """The file of a partition."""
    return f"{uuid}/{table}/{label}{DATA_SUFFIX}"


def index_file(uuid: str, column: str, time: dt.datetime) -> str:
    """The file of an inverted index that was made at `time` (UTC)."""
    moment = time.replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{uuid}/{INDICES}/{_quoted(column)}/{_quoted(moment)}{INDEX_SUFFIX}"


def label(keys: Sequence[tuple[str, Any]], base: str) -> str:
    """The label of a partition, of the values of its keys and a name that no other has."""
    parts = [f"{_quoted(column)}={_quoted(text_of(value))}" for column, value in keys]
    return "/".join([*parts, base])


def _quoted(text: str) -> str:
    return quote(text, safe="")


def text_of(value: Any) -> str:
    """The text of a value as Python writes it, which kartothek takes."""
    if isinstance(value, float):
        return str(value + 0.0)  # there is one zero
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return str(value.astimezone(dt.UTC).replace(tzinfo=None))
    return str(value)


def key_texts(file: str) -> tuple[tuple[str, str], ...]:
    """Columns and texts of the partition keys in the name of a data file."""
    pairs: list[tuple[str, str]] = []
    for part in file.split("/")[2:-1]:
        column, equals, value = part.partition("=")
        if equals:
            pairs.append((unquote(column), unquote(value)))
        elif pairs:
            # kartothek wrote a value with a slash
            column, value = pairs[-1]
            pairs[-1] = (column, f"{value}/{unquote(part)}")
    return tuple(pairs)


def key_value(text: str, kind: pa.DataType) -> Any:
    """The value of a partition key, of the type that the schema says; `ValueError` if it is none.

    All that kartothek writes is read, also where it cannot read it itself.
    """
    from pyarrow import types

    if types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()]
    if types.is_integer(kind):
        return int(text)
    if types.is_floating(kind):
        return float(text)
    if types.is_decimal(kind):
        return Decimal(text)
    if types.is_date(kind):
        return dt.datetime.fromisoformat(text).date()
    if types.is_timestamp(kind):
        time = dt.datetime.fromisoformat(text)
        if kind.tz is None or time.tzinfo is not None:
            return time
        return time.replace(tzinfo=dt.UTC)
    if types.is_binary(kind):
        return ast.literal_eval(text) if text[:2] in ("b'", 'b"') else text.encode()
    return text
