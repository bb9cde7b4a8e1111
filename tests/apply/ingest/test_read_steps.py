"""Every kind of read and prepare step, from files into a chain, however runs end.

What did not change writes nothing; what is new comes exactly once; a file that cannot be read
leaves the chain as it was, and once it is corrected, the next run brings what is missing.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapefile

from odfbuild.engine.contract import Engine
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import DatasetOutcome, Status
from tests.ingest.bad_sources import Case, csv, lines
from tests.ingest.many_sources import apply, arrive, define, heads

pytestmark = pytest.mark.spark

N = "n BIGINT"
Rows = list[int]


def _csv(rows: Rows) -> bytes:
    return "\n".join(["n", *map(str, rows)]).encode()


def _features(rows: Rows) -> list[dict[str, object]]:
    geometry = {"type": "Point", "coordinates": [1, 2]}
    return [{"type": "Feature", "properties": {"n": n}, "geometry": geometry} for n in rows]


def _ndjson(values: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _zipped(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "x")
        archive.writestr(name, data)
    return out.getvalue()


def _shapes(rows: Rows) -> bytes:
    parts = {kind: io.BytesIO() for kind in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts) as writer:
        writer.field("n", "N", 18, 0)
        for n in rows:
            writer.point(n, n)
            writer.record(n)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for kind, data in parts.items():
            archive.writestr(f"in/x.{kind}", data.getvalue())
    return out.getvalue()


def _parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"n": rows}), out)
    return out.getvalue()


def _step(name: str, read: dict[str, object], **more: object) -> Case:
    return Case(name, b"", b"", None, "", read=read, **more)  # type: ignore[arg-type]


STEPS: list[tuple[Case, Callable[[Rows], bytes]]] = [
    (_step("csv", csv(N)), _csv),
    (_step("ndjson", lines("NdJson", N)), lambda rows: _ndjson([{"n": n} for n in rows])),
    (
        _step("json", lines("Json", N, subPath="a.b")),
        lambda rows: json.dumps({"a": {"b": [{"n": n} for n in rows]}}).encode(),
    ),
    (
        _step("geojson", lines("GeoJson", N)),
        lambda rows: json.dumps(
            {"type": "FeatureCollection", "features": _features(rows)}
        ).encode(),
    ),
    (_step("ndgeojson", lines("NdGeoJson", N)), lambda rows: _ndjson(_features(rows))),
    (_step("shapefile", lines("EsriShapefile", N)), _shapes),
    (_step("parquet", lines("Parquet", N)), _parquet),
    (
        _step("gzip", csv(N), prepare=[{"kind": "Decompress", "format": "Gzip"}]),
        lambda rows: gzip.compress(_csv(rows)),
    ),
    (
        _step(
            "zip",
            csv(N),
            prepare=[{"kind": "Decompress", "format": "Zip", "subPath": "*/x.csv"}],
        ),
        lambda rows: _zipped("in/x.csv", _csv(rows)),
    ),
    (
        _step("pipe", csv(N), prepare=[{"kind": "Pipe", "command": ["gzip", "-dc"]}]),
        lambda rows: gzip.compress(_csv(rows)),
    ),
    (
        _step("preprocess", csv("m BIGINT"), preprocess="SELECT m AS n FROM input"),
        lambda rows: _csv(rows).replace(b"n", b"m", 1),
    ),
]


def _broken(data: bytes) -> bytes:
    """What is cut off; text, of which the beginning is whole, ends in something else."""
    return data + b"x" if data[:2] in (b"n\n", b"m\n") else data[:-5]


def _said(outcome: DatasetOutcome) -> str:
    assert outcome.error is not None
    return "\n".join((outcome.error.message, *outcome.error.notes, str(outcome.error.location)))


def _records(root: Path, name: str) -> Rows:
    space = Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild")
    files = space.committed(name, space.projection(name)).files()
    return [n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist()]


def test_records_come_once_through_every_step_however_runs_end(
    tmp_path: Path, spark_engine: Engine
) -> None:
    config = {"kind": "Project", "version": 1, "content": {"name": "steps"}}
    (tmp_path / "odfbuild.yaml").write_text(json.dumps(config), "utf-8")
    for case, data in STEPS:
        define(tmp_path, case)
        arrive(tmp_path, case, "1", data([1, 2]))
    assert not [d.error for d in apply(tmp_path, spark_engine).datasets if d.error]
    committed = heads(tmp_path)
    assert all(_records(tmp_path, case.name) == [1, 2] for case, _ in STEPS)

    # Nothing changed: nothing is written.
    assert all(d.status is Status.NOOP for d in apply(tmp_path, spark_engine).datasets)
    assert heads(tmp_path) == committed

    # The second file breaks off, the third waits behind it.
    for case, data in STEPS:
        arrive(tmp_path, case, "2", _broken(data([3, 4])))
        arrive(tmp_path, case, "3", data([5]))
    broken = {d.name: d for d in apply(tmp_path, spark_engine).datasets}
    assert heads(tmp_path) == committed
    for case, _ in STEPS:
        assert broken[case.name].status is Status.FAILED, case.name
        assert f"data/{case.name}/2" in _said(broken[case.name])

    for case, data in STEPS:
        arrive(tmp_path, case, "2", data([3, 4]))
    assert not [d.error for d in apply(tmp_path, spark_engine).datasets if d.error]
    for case, _ in STEPS:
        assert _records(tmp_path, case.name) == [1, 2, 3, 4, 5], case.name
