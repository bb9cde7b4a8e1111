"""Convert an ESRI shapefile in a ZIP archive to lines: attributes and `geometry` as GeoJSON.

As the reference writes it: numbers are floating point, dates are text without leading zeros, blank
values are null, and lines and polygons are always of their Multi kind. Columns declared as integers
are read as such. Source: reference behaviour, read steps.
"""

from __future__ import annotations

import fnmatch
import shutil
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.json_records import to_json, write_records
from odfbuild.engine.spark.reading.shapefile_text import (
    AS_BYTES,
    SAID_BY,
    attribute_codec,
    decoded,
)
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepEsriShapefile

if TYPE_CHECKING:
    import shapefile

_NEEDED = (".shp", ".dbf")
_OPTIONAL = (".shx", *SAID_BY)
_LARGEST = 4 << 30
"""Bytes of an unpacked member: the format cannot hold more, so a larger one is a trap."""
_MULTIPLE = {"LineString": "MultiLineString", "Polygon": "MultiPolygon"}


def shapefile_records(
    task: IngestTask, read: ReadStepEsriShapefile, columns: pa.Schema | None
) -> SourceText:
    """The shapes of the one `.shp` that `subPath` names or matches; `IngestError` otherwise."""
    import shapefile

    whole = {f.name for f in columns or () if pa.types.is_integer(f.type)}
    try:
        with zipfile.ZipFile(task.file) as archive:
            members = _unpack(task, archive, _choose(task, archive.namelist(), read.sub_path))
        with closing(_reader(members)) as reader:
            codec = attribute_codec(task, members, reader)
            return write_records(task, _records(task, reader, codec, whole))
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
        raise _broken(task, f"not a readable ZIP archive: {error}") from None
    except (shapefile.ShapefileException, OSError, ValueError, IndexError) as error:
        raise _broken(task, f"not a readable shapefile: {error}") from None
    except Exception as error:
        if type(error).__module__ in ("struct", "zlib"):
            raise _broken(task, f"not a readable shapefile: {error}") from None
        raise


def _choose(task: IngestTask, names: list[str], sub_path: str | None) -> str:
    shapes = [name for name in names if name.lower().endswith(".shp")]
    if sub_path is None:
        found = shapes
    elif sub_path in shapes:
        found = [sub_path]
    else:
        found = [name for name in shapes if fnmatch.fnmatchcase(name, sub_path)]
    if len(found) == 1:
        return found[0]
    which = f" that match `subPath: {sub_path}`" if sub_path else ""
    raise IngestError(
        f"'{task.source_name}' holds {len(found) or 'no'} .shp files{which}",
        code="E0423",
        location=Location(task.source_name),
        notes=(f"it holds: {', '.join(names[:10])}",),
        help="name one of them in `read.subPath`",
        dataset=task.dataset,
    )


def _unpack(task: IngestTask, archive: zipfile.ZipFile, shape: str) -> dict[str, Path]:
    """The parts of one shapefile in the scratch folder, by suffix."""
    stem = shape[: -len(".shp")]
    members = {}
    for name in archive.namelist():
        suffix = name[len(stem) :].lower()
        if name.startswith(stem) and suffix in _NEEDED + _OPTIONAL:
            if archive.getinfo(name).file_size > _LARGEST:
                raise _broken(task, f"the member {name} is larger than {_LARGEST >> 30} GiB")
            members[suffix] = task.scratch / f"shape{suffix}"
            with archive.open(name) as source, members[suffix].open("wb") as target:
                shutil.copyfileobj(source, target)
    missing = [f"{stem}{suffix}" for suffix in _NEEDED if suffix not in members]
    if missing:
        raise _broken(task, f"the member {missing[0]} is missing")
    return members


def _reader(members: Mapping[str, Path]) -> shapefile.Reader:
    import shapefile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is corrupt fails when it is read
        return shapefile.Reader(str(members[".shp"].with_suffix("")), encoding=AS_BYTES)


def _records(
    task: IngestTask, reader: shapefile.Reader, codec: str, whole: set[str]
) -> Iterator[str]:
    if reader.numShapes is not None and reader.numShapes != reader.numRecords:
        raise _broken(
            task, f"it has {reader.numShapes} shapes and {reader.numRecords} rows of attributes"
        )
    fields = [field[0] for field in reader.fields if field[0] != "DeletionFlag"]
    # Names are cut after ten bytes, wherever a character ends.
    names = [field.encode(AS_BYTES).decode(codec, "ignore") for field in fields]
    rows = zip(reader.iterShapes(), reader.iterRecords(), strict=True)
    for number, (shape, record) in enumerate(rows, 1):
        row = {}
        for name, value in zip(names, record, strict=True):
            if isinstance(value, str):
                row[name] = decoded(value, codec, number, name, task).strip() or None
            else:
                row[name] = _value(value, name in whole)
        yield to_json({**row, "geometry": _geometry(shape)})


def _value(value: Any, whole: bool) -> Any:
    if isinstance(value, date):
        return f"{value.year}-{value.month}-{value.day}"
    if isinstance(value, int) and not isinstance(value, bool) and not whole:
        return float(value)
    if isinstance(value, float) and whole and value.is_integer():
        return int(value)
    return value


def _geometry(shape: Any) -> str | None:
    """Compact GeoJSON with sorted keys; `None` for a row without a shape."""
    if shape.shapeType == 0:
        return None
    found = shape.__geo_interface__
    kind, coordinates = found["type"], found.get("coordinates")
    if kind in _MULTIPLE:
        kind, coordinates = _MULTIPLE[kind], [coordinates]
    return to_json({"type": kind, "coordinates": coordinates})


def _broken(task: IngestTask, why: str) -> IngestError:
    return IngestError(
        f"'{task.source_name}' is {why}"
        if why.startswith("not ")
        else f"'{task.source_name}' is not a complete shapefile: {why}",
        code="E0423",
        location=Location(task.source_name),
        help="check the archive: it needs at least a .shp and a .dbf of the same name",
        dataset=task.dataset,
    )
