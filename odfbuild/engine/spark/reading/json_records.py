"""Convert JSON documents to one record per line, which Spark reads in parallel.

Read as a stream, so a document may be larger than memory. Features of GeoJSON become a record of
their properties and a column `geometry`, compact JSON with sorted keys, as the reference writes it.
Both have to be objects, as for the reference, though RFC 7946 (section 3.2) lets them be null.
Source: reference behaviour, read steps.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from odfbuild.engine.contract import BadRecord, IngestTask
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.half_characters import refuse_half_characters
from odfbuild.engine.spark.reading.json_depth import too_deep
from odfbuild.engine.spark.reading.source_text import SourceText, shown, utf8_text
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepJson
from odfbuild.odf.schema.ddl import parse_ddl

_EXPLAINED = 64 << 20
"""Bytes of a document that are read again to say where it is broken."""


def json_records(task: IngestTask, read: ReadStepJson) -> SourceText:
    """The elements of the array at `subPath` (dots between keys; the root by default)."""
    text = utf8_text(task, read.encoding)
    refuse_half_characters(task, text)
    path = read.sub_path or ""
    if _first_event(task, text.file, path) != "start_array":
        raise IngestError(
            f"'{task.source_name}' has no array at "
            + (f"`subPath: {path}`" if path else "its root"),
            code="E0423",
            location=Location(task.source_name),
            help="name the keys that lead to the array of records, as `subPath: result.items`; "
            "one object a line is read by `NdJson`",
            dataset=task.dataset,
        )
    records = _items(task, text.file, f"{path}.item" if path else "item")
    return write_records(task, (to_json(record) for record in records))


def geojson_records(task: IngestTask, bad: BadRecords) -> SourceText:
    """The features of a FeatureCollection."""
    text = utf8_text(task, None)
    refuse_half_characters(task, text)
    found = next(iter(_items(task, text.file, "type")), None)
    array = _first_event(task, text.file, "features")
    if found != "FeatureCollection" or array != "start_array":
        raise IngestError(
            f"'{task.source_name}' is not a GeoJSON FeatureCollection{_instead(found)}",
            code="E0423",
            location=Location(task.source_name),
            help="a collection has `type: FeatureCollection` and an array `features`; "
            "use `NdGeoJson` for one feature a line",
            dataset=task.dataset,
        )
    with_id = _has_id(task)

    def records() -> Iterator[str]:
        for number, feature in enumerate(_items(task, text.file, "features.item"), 1):
            place = Location(task.source_name, instance=f"feature {number}")
            yield _feature(feature, place, bad, with_id)

    return write_records(task, records())


def ndgeojson_records(task: IngestTask, bad: BadRecords) -> SourceText:
    """One feature a line; blank lines are passed over."""
    text = utf8_text(task, None)
    refuse_half_characters(task, text)
    with_id = _has_id(task)

    def records() -> Iterator[str]:
        for number, line in text.lines():
            if not line.strip():
                yield ""
                continue
            place = Location(task.source_name, number, None, shown(line))
            try:
                feature = json.loads(line, parse_float=Decimal, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                bad.add(BadRecord(f"a line is not valid JSON ({error})", place))
                yield ""
                continue
            yield _feature(feature, place, bad, with_id)

    return SourceText(write_records(task, records()).file, "line")


def to_json(value: Any) -> str:
    """Compact JSON with sorted keys; decimals keep all their digits."""
    try:
        return json.dumps(value, **_COMPACT)
    except TypeError:  # a decimal somewhere, which only the slow way can write
        pass
    if isinstance(value, dict):
        members = (
            f"{json.dumps(k, ensure_ascii=False)}:{to_json(value[k])}" for k in sorted(value)
        )
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(to_json, value))}]"
    return str(value)


_COMPACT: dict[str, Any] = {
    "separators": (",", ":"),
    "sort_keys": True,
    "ensure_ascii": False,
    "allow_nan": False,
}


_SHAPES = ["Point", "LineString", "Polygon", "GeometryCollection"]
_SHAPES += ["MultiPoint", "MultiLineString", "MultiPolygon"]
"""Types of a geometry (RFC 7946, section 1.4)."""


def _has_id(task: IngestTask) -> bool:
    """Whether `id` is a declared column, which the `id` of a feature then fills."""
    read = task.read
    if read.schema is not None:
        return any(field.name == "id" for field in read.schema.fields)
    return bool(read.ddl_schema) and "id" in parse_ddl(read.ddl_schema or ()).names


def _feature(feature: Any, place: Location, bad: BadRecords, with_id: bool) -> str:
    """A feature as a record; an empty line when it is none."""
    why, shape = _no_feature(feature), ""
    try:
        shape = json.dumps(feature["geometry"], default=float, **_COMPACT) if why is None else ""
    except ValueError:
        why = "`geometry` of a GeoJSON Feature has a number that is too large"
    if why is not None:
        bad.add(BadRecord(why, place))
        return ""
    record = dict(feature["properties"])
    if with_id and "id" in feature:
        record.setdefault("id", feature["id"])
    record["geometry"] = shape
    return to_json(record)


def _instead(kind: Any) -> str:
    """What a text is that should be something else, as far as GeoJSON knows it."""
    return f" but a {kind}" if kind in ["Feature", "FeatureCollection", *_SHAPES] else ""


def _no_feature(feature: Any) -> str | None:
    """Why a value is not a feature that can be read; `None` when it is."""
    kind = feature.get("type") if isinstance(feature, dict) else None
    if kind != "Feature":
        return f"a record is not a GeoJSON Feature{_instead(kind)}"
    for name in ("properties", "geometry"):
        if name not in feature:
            return f"a GeoJSON Feature has no `{name}`"
        if not isinstance(feature[name], dict):
            return f"`{name}` of a GeoJSON Feature is no object"
    if feature["geometry"].get("type") not in _SHAPES:
        return "`geometry` of a GeoJSON Feature is none of the shapes of RFC 7946"
    if "geometry" in feature["properties"]:
        return "a GeoJSON Feature has a property `geometry`, as the column of its shape is called"
    return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def write_records(task: IngestTask, records: Iterator[str]) -> SourceText:
    """A file in the scratch folder with `records`, each JSON in one line."""
    target = task.scratch / "records.ndjson"
    number = 0
    with target.open("w", encoding="utf-8", newline="\n") as output:
        try:
            for record in records:
                number += 1
                output.write(record)
                output.write("\n")
        except RecursionError:
            place = Location(task.source_name, instance=f"record {number + 1}")
            raise too_deep(task, place) from None
    return SourceText(target, "record")


# --- Streaming ---


def _first_event(task: IngestTask, file: Path, path: str) -> str | None:
    """What stands at `path`: `start_array`, `start_map`, `string` …; `None` for nothing."""
    import ijson

    with _opened(file) as source, _explained(task, file):
        for prefix, event, _ in ijson.parse(source):
            if prefix == path and event != "map_key":
                return str(event)
    return None


def _items(task: IngestTask, file: Path, path: str) -> Iterator[Any]:
    import ijson

    with _opened(file) as source, _explained(task, file):
        yield from ijson.items(source, path)


def _opened(file: Path) -> io.BufferedReader:
    source = file.open("rb")
    if source.peek(3)[:3] == b"\xef\xbb\xbf":
        source.read(3)
    return source


class _explained:  # noqa: N801 - reads as a statement
    """Turn errors of the parser into an `IngestError` with line and column."""

    def __init__(self, task: IngestTask, file: Path) -> None:
        self._task = task
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import ijson

        if isinstance(error, ijson.JSONError):
            raise _broken(self._task, self._file, str(error)) from None


def _broken(task: IngestTask, file: Path, message: str) -> IngestError:
    line = column = None
    why = message.splitlines()[0].removeprefix("parse error: ").removeprefix("lexical error: ")
    if file.stat().st_size <= _EXPLAINED:
        try:
            json.loads(file.read_text("utf-8-sig"), parse_constant=_refuse)
        except json.JSONDecodeError as found:
            line, column, why = found.lineno, found.colno, found.msg
        except (ValueError, RecursionError) as found:
            why = str(found)
    return IngestError(
        f"'{task.source_name}' is not valid JSON: {why}",
        code="E0423",
        location=Location(task.source_name, line, column),
        help="correct the file, or use `NdJson` for one object a line",
        dataset=task.dataset,
    )
