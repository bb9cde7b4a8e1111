"""Files that are evidently no text are called by what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.file_kind import refuse_other_kind
from odfbuild.odf.model import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)

TEXT = b"id,name\n1,a\n"


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("x.csv")
        entry.size = len(TEXT)
        archive.addfile(entry, io.BytesIO(TEXT))
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "read", "what", "way_out"),
    [
        (gzip.compress(TEXT, mtime=0), ReadStepCsv(), "Gzip", "format: Gzip"),
        (gzip.compress(TEXT, mtime=0), ReadStepParquet(), "Gzip", "format: Gzip"),
        (bz2.compress(TEXT), ReadStepNdJson(), "bzip2", "[bzip2, -dc]"),
        (lzma.compress(TEXT), ReadStepNdJson(), "xz", "[xz, -dc]"),
        (pa.compress(TEXT, "zstd", asbytes=True), ReadStepCsv(), "zstd", "[zstd, -dc]"),
        (tarred(), ReadStepCsv(), "tar", "[tar, -xOf, -]"),
        (zipped("x.csv"), ReadStepCsv(), "Zip", "format: Zip"),
        (
            zipped("[Content_Types].xml", "xl/workbook.xml"),
            ReadStepCsv(),
            "Office",
            "odfbuild, convert",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            ReadStepCsv(),
            "Office",
            "odfbuild, convert",
        ),
        (parquet(), ReadStepCsv(), "Parquet", "kind: Parquet"),
        (TEXT.decode().encode("utf-16"), ReadStepCsv(), "UTF-16", "read.encoding: utf-16"),
        (b"\xfe\xff" + "{}".encode("utf-16-be"), ReadStepNdGeoJson(), "UTF-16", "iconv"),
    ],
)
def test_what_a_file_is_and_what_to_do_is_said(
    tmp_path: Path, data: bytes, read: ReadStep, what: str, way_out: str
) -> None:
    file = tmp_path / "x"
    file.write_bytes(data)
    with pytest.raises(IngestError, match=what) as caught:
        refuse_other_kind(file, read, "data/x", "root")
    assert caught.value.code == "E0450"
    assert way_out in str(caught.value.help)


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", ReadStepCsv()),
        (TEXT, ReadStepCsv()),
        (b"\xef\xbb\xbf" + TEXT, ReadStepCsv()),
        (b"PAR1,BZh9\n", ReadStepCsv()),
        (b"PK,MZ,ustar\n", ReadStepCsv()),
        (TEXT.decode().encode("utf-16"), ReadStepCsv(encoding="utf-16")),
        (zipped("x.shp"), ReadStepEsriShapefile()),
        (parquet(), ReadStepParquet()),
        (TEXT, ReadStepParquet()),
    ],
)
def test_what_may_be_right_is_left_to_the_reader(tmp_path: Path, data: bytes, read: Any) -> None:
    file = tmp_path / "x"
    file.write_bytes(data)
    refuse_other_kind(file, read, "data/x", "root")
