"""Attributes of shapefiles in whatever encoding: what says it, what is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
import shapefile

from odfbuild.declared_settings import read
from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.shapefile_records import shapefile_records
from odfbuild.errors import IngestError
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import MergeStrategyAppend, ReadStepEsriShapefile
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.run_ingest import LATE, OneFile

GREEK, RUSSIAN, GERMAN = "Αθήνα", "Москва", "Köln"


def archive(name: str, codec: str, driver: int = 0, **beside: str) -> bytes:
    """Two cities, the second one called `name`; `beside` are further files, by their endings."""
    parts = {part: io.BytesIO() for part in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts, encoding=codec) as writer:
        writer.field("city", "C", 30)
        for each in ("Bergen", name):
            writer.point(5.3, 60.4)
            writer.record(each)
    table = bytearray(parts["dbf"].getvalue())
    table[29] = driver
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for part in ("shp", "shx"):
            packed.writestr(f"x.{part}", parts[part].getvalue())
        packed.writestr("x.dbf", bytes(table))
        for ending, text in beside.items():
            packed.writestr(f"x.{ending}", text)
    return target.getvalue()


def cities(folder: Path, data: bytes, encoding: str | None = None) -> list[str]:
    """What is read of an archive where odfbuild.yaml says `encoding`."""
    file = folder / "x.zip"
    file.write_bytes(data)
    settings = read(IngestSettings, {"shapefileEncoding": {"ci*": encoding}} if encoding else {})
    task = IngestTask(
        dataset="cities",
        file=file,
        source_name="data/x.zip",
        read=ReadStepEsriShapefile(),
        preprocess=None,
        merge=MergeStrategyAppend(),
        vocab=Vocabulary(),
        history=OneFile(None),
        history_schema=None,
        event_time=LATE,
        scratch=folder,
        **settings.policies("cities").policies(),
    )
    text = shapefile_records(task, ReadStepEsriShapefile(), None)
    return [json.loads(line)["city"] for _, line in text.lines()]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (archive(GREEK, "utf-8"), GREEK),
        (archive(GERMAN, "cp1252", cpg="1252"), GERMAN),
        (archive(GERMAN, "cp1252", cpg="ANSI 1252\n"), GERMAN),
        (archive(GERMAN, "latin-1", cpg="ISO-8859-1"), GERMAN),
        (archive(GREEK, "iso8859-7", cpg="88597"), GREEK),
        (archive(GERMAN, "cp850", cpg="OEM 850"), GERMAN),
        (archive(GREEK, "utf-8", cpg="65001"), GREEK),
        (archive(RUSSIAN, "cp1251", cst="windows-1251"), RUSSIAN),
        (archive(RUSSIAN, "cp1251", cst="utf-8", cpg="cp1251"), RUSSIAN),
        (archive(RUSSIAN, "cp1251", driver=0xC9), RUSSIAN),
        (archive(RUSSIAN, "cp866", driver=0x65), RUSSIAN),
        (archive("東京", "cp932", driver=0x13), "東京"),
        # Many programs write UTF-8 and leave the driver of something else.
        (archive(RUSSIAN, "utf-8", driver=0x03), RUSSIAN),
        (archive(RUSSIAN, "utf-8", driver=0x57), RUSSIAN),
    ],
)
def test_attributes_are_read_in_the_encoding_that_the_archive_says(
    tmp_path: Path, data: bytes, name: str
) -> None:
    assert cities(tmp_path, data) == ["Bergen", name]


def test_odfbuild_yaml_has_the_last_word_about_the_encoding(tmp_path: Path) -> None:
    nobody_says = archive(RUSSIAN, "cp1251")
    assert cities(tmp_path, nobody_says, "windows-1251") == ["Bergen", RUSSIAN]
    wrongly_said = archive(RUSSIAN, "cp1251", cpg="1252")
    assert cities(tmp_path, wrongly_said, "windows-1251") == ["Bergen", RUSSIAN]


@pytest.mark.parametrize(
    "data",
    [
        archive(RUSSIAN, "cp1251"),
        # "ANSI" is the code page of whoever wrote it, so it says nothing.
        archive(RUSSIAN, "cp1251", driver=0x57),
        archive(RUSSIAN, "cp1251", cst="UTF-8"),
    ],
)
def test_attributes_in_another_encoding_are_refused_with_record_column_and_way_out(
    tmp_path: Path, data: bytes
) -> None:
    with pytest.raises(IngestError) as caught:
        cities(tmp_path, data)
    error = caught.value
    said = error.message
    assert said.startswith("record 2 of 'data/x.zip' holds bytes in 'city' that are not UTF-8")
    assert (error.code, str(error.location)) == ("E0425", "data/x.zip (record 2)")
    assert "`ingest.shapefileEncoding: {cities: windows-1252}` in odfbuild.yaml" in str(error.help)
    assert "{pad" not in said


@pytest.mark.parametrize(
    ("data", "encoding", "option"),
    [
        (archive("x", "utf-8", cpg="none such"), None, ".cpg"),
        (archive("x", "utf-8", cst="cp99999"), None, ".cst"),
        (archive("x", "utf-8"), "none such", "ingest.shapefileEncoding"),
    ],
)
def test_an_encoding_that_nobody_knows_is_refused_with_who_says_it(
    tmp_path: Path, data: bytes, encoding: str | None, option: str
) -> None:
    with pytest.raises(IngestError, match=f"of `{option}` is not supported") as caught:
        cities(tmp_path, data, encoding)
    assert caught.value.code == "E0422"
