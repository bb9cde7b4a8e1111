"""Read samples of local files: their format, columns and possible keys.

Reads the first records only, without an engine and without the network. What a definition says
counts later, not what was found here. Raises `IngestError` when a file cannot be understood.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from odfbuild.errors import IngestError, Location
from odfbuild.ingest.convert.run import run_conversion
from odfbuild.ingest.convert.words import KINDS as CONVERSIONS
from odfbuild.ingest.convert.words import OUTPUTS as CONVERTED_TO
from odfbuild.ingest.convert.words import conversion_of
from odfbuild.ingest.guess import Column, InferredFormat, guess, guess_key
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import ReadStep
from odfbuild.values import Value

RECORDS = 10_000
"""How many records are looked at, of all files together, of each the same share."""
_FEWEST = 100
_CONVERTED_FILES = 5
"""Files that are converted to look at them: each is read as a whole."""

_FORMATS = {ending: each.KIND for each in ReadStep.__args__ for ending in each.ENDINGS}
_PACKED = {".gz": "Gzip", ".zip": "Zip"}
_SEPARATORS = ",;\t|"
_T = TypeVar("_T")

_CONVERTED = {
    ".xlsx": "spreadsheet",
    ".xlsm": "spreadsheet",
    ".xls": "spreadsheet",
    ".ods": "spreadsheet",
    ".avro": "avro",
    ".orc": "orc",
}
"""Conversions that names of files tell."""

FORMATS = (*sorted(each[1:] for each in _FORMATS), *CONVERSIONS)
"""What a format may be called."""


class Form(Value):
    """How a file is written: `kind` of its read step, separator, `Gzip` or `Zip` around it.

    `convert` are the words of the conversion that it needs before it is read, if any.
    """

    kind: str
    separator: str = ","
    packed: str | None = None
    convert: tuple[str, ...] = ()


class Sample(Value):
    """What the files look like.

    `header`: the first line of CSV names the columns, `line_breaks`: its quoted values hold some.
    """

    form: Form
    guess: InferredFormat
    header: bool = True
    line_breaks: bool = False


def form_of(name: str, called: str | None = None) -> Form | None:
    """The form that a file name tells, or that it is `called`; `None` when neither does.

    It may be called by the words of a conversion: `spreadsheet --sheet Prices`.
    """
    stem, packed = name.lower(), None
    for suffix, how in _PACKED.items():
        if stem.endswith(suffix):
            stem, packed = stem.removesuffix(suffix), how
    suffix = f".{called}" if called else Path(stem).suffix
    words = shlex.split(called) if called else [_CONVERTED.get(suffix, "")]
    if words and words[0] in CONVERSIONS:
        return _form_of_conversion(words, packed)
    kind = _FORMATS.get(suffix)
    return Form(kind, "\t" if suffix == ".tsv" else ",", packed) if kind else None


def _form_of_conversion(words: Sequence[str], packed: str | None) -> Form | None:
    wanted = conversion_of(words)
    if wanted.kind != "archive":
        return Form(CONVERTED_TO[wanted.kind], packed=packed, convert=tuple(words))
    inner = form_of(wanted.one("match") or "")
    # What Zip would unpack is the archive itself.
    return None if inner is None else replace(inner, packed=None, convert=tuple(words))


def look_at(files: Sequence[Path], form: Form) -> Sample:
    """What the first records of `files` look like; all of them have that form."""
    if form.convert:
        with tempfile.TemporaryDirectory() as folder:
            converted = [_converted(each, form, Path(folder)) for each in files[:_CONVERTED_FILES]]
            return _as_converted(look_at(converted, replace(form, packed=None, convert=())), form)
    match form.kind:
        case "Csv":
            return _csv(files, form)
        case "Parquet":
            return Sample(form, _parquet(files[0]))
        case "Json" | "NdJson":
            records = _shares([_json_records(each, form) for each in files])
            return Sample(form, guess(records, is_text=False))
    return Sample(form, InferredFormat((), 0))


def _as_converted(sample: Sample, form: Form) -> Sample:
    return replace(sample, form=replace(sample.form, packed=form.packed, convert=form.convert))


def _converted(file: Path, form: Form, folder: Path) -> Path:
    source = file
    if form.packed:
        source = folder / "unpacked"
        with _unpacked(file, form.packed) as data, source.open("wb") as sink:
            shutil.copyfileobj(data, sink)
    target = folder / f"{len(list(folder.iterdir()))}-{file.name}"
    run_conversion(form.convert, source, target, file.name, IngestSettings())
    return target


def _shares(files: Sequence[Iterator[_T]]) -> list[list[_T]]:
    """The first records of each file, so that one long file does not hide the others."""
    share = max(_FEWEST, RECORDS // len(files))
    return [list(itertools.islice(each, share)) for each in files[: RECORDS // share]]


def _csv(files: Sequence[Path], form: Form) -> Sample:
    with _text(files[0], form) as text:
        first = text.readline()
    if not first.strip():
        raise _not_understood(files[0], "its first line is empty", 1)
    separator = form.separator
    if separator == "," and "," not in first:
        separator = max(_SEPARATORS, key=first.count)
    cells = next(_rows(files[0], form, separator))
    # A number in the first line is data: nobody calls a column 17.
    header = not any(_is_number(cell) for cell in cells)
    names = [" ".join(cell.split()) for cell in cells]
    names = names if header else [f"c{n + 1}" for n in range(len(cells))]
    if reason := _bad_header(names):
        raise _not_understood(files[0], reason, 1, first.rstrip("\r\n"))
    rows = [itertools.islice(_rows(each, form, separator), int(header), None) for each in files]
    parts = _shares(rows)
    records = [[dict(zip(names, row, strict=False)) for row in part if row] for part in parts]
    breaks = _have_breaks([cells]) or any(map(_have_breaks, parts))
    if breaks:
        for each in files[: len(parts)]:
            # A quote that nobody closes looks the same; what is wrong with it, the reader says.
            for _ in itertools.islice(_rows(each, form, separator, strict=True), RECORDS):
                pass
    found = guess(records, is_text=True)
    if not found.records:
        found = InferredFormat(tuple(Column(name, "STRING") for name in names), 0)
    return Sample(Form("Csv", separator, form.packed), found, header, breaks)


def _have_breaks(rows: Sequence[Sequence[str]]) -> bool:
    return any("\n" in cell or "\r" in cell for row in rows for cell in row)


def _bad_header(names: Sequence[str]) -> str | None:
    """Why these are no names of columns; `None`: they are."""
    seen: set[str] = set()
    for at, name in enumerate(names, 1):
        if not name:
            return f"column {at} of its header has no name"
        if name.lower() in seen:
            return f"its header has the name '{name}' twice"
        seen.add(name.lower())
    return None


def _rows(file: Path, form: Form, separator: str, strict: bool = False) -> Iterator[list[str]]:
    with _text(file, form) as text:
        yield from csv.reader(text, delimiter=separator, strict=strict)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity")


def _json_records(file: Path, form: Form) -> Iterator[dict[str, Any]]:
    with _text(file, form) as text:
        if form.kind == "Json":
            found = _parsed(text.read(), file, None)
            if not isinstance(found, list):
                raise _not_understood(file, "it is no array of objects: name its `subPath` by hand")
            yield from (each for each in found if isinstance(each, dict))
            return
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            record = _parsed(line, file, number)
            if not isinstance(record, dict):
                raise _not_understood(file, "this line is no JSON object", number, line.rstrip())
            yield record


def _parsed(text: str, file: Path, line: int | None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "values are nested too deeply")
        raise _not_understood(file, f"this is not JSON: {reason}", line) from None


def _parquet(file: Path) -> InferredFormat:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            columns = [_column(field) for field in opened.schema_arrow]
            batch = next(opened.iter_batches(RECORDS), None)
    except (pa.ArrowException, OSError) as error:
        raise _not_understood(file, f"this is not Parquet: {error}") from None
    # One type without a form in DDL, and the file decides on all of them.
    if None in columns:
        return InferredFormat((), batch.num_rows if batch else 0)
    return guess_key([each for each in columns if each], [batch.to_pylist() if batch else []])


def _column(field: Any) -> Column | None:
    import pyarrow as pa

    names = {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.string(): "STRING",
        pa.large_string(): "STRING",
        pa.binary(): "BINARY",
        pa.date32(): "DATE",
    }
    kind = names.get(field.type)
    if pa.types.is_timestamp(field.type):
        kind = "TIMESTAMP"
    elif pa.types.is_decimal128(field.type):
        kind = f"DECIMAL({field.type.precision}, {field.type.scale})"
    return Column(field.name, kind) if kind else None


@contextmanager
def _text(file: Path, form: Form) -> Iterator[IO[str]]:
    try:
        with _unpacked(file, form.packed) as data:
            yield io.TextIOWrapper(data, encoding="utf-8-sig", newline="")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text ({error.reason}): convert it, or write `read.encoding`"
        raise _not_understood(file, reason) from None
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise _not_understood(file, getattr(error, "strerror", None) or str(error)) from None
    except csv.Error as error:
        raise _not_understood(file, f"this is not CSV: {error}") from None


@contextmanager
def _unpacked(file: Path, packed: str | None) -> Iterator[IO[bytes]]:
    if packed == "Gzip":
        with gzip.open(file) as unzipped:
            yield cast(IO[bytes], unzipped)
    elif packed == "Zip":
        with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as data:
            yield data
    else:
        with file.open("rb") as data:
            yield data


def _not_understood(
    file: Path, reason: str, line: int | None = None, snippet: str | None = None
) -> IngestError:
    return IngestError(
        f"no columns can be proposed from '{file.name}': {reason}",
        code="E0436",
        location=Location(str(file), line, 1 if line else None, snippet),
        help="give a file that is in order, or write the definition by hand (docs/datasets.md)",
    )
