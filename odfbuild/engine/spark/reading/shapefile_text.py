"""Detect the encoding of a shapefile's attributes, and decode them.

What odfbuild.yaml says counts, else the `.cpg` or `.cst` of the archive. Where nobody says it is
UTF-8, and where it is not, the code page that the table names, if it names one.
Sources: xBase file format, "language driver"; ESRI, "Read and write shapefile and dBASE files
encoded in various code pages".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.read_options import codec_of
from odfbuild.errors import IngestError, Location

if TYPE_CHECKING:
    import shapefile

AS_BYTES = "latin-1"
"""Every byte is a character: what is read in it can be decoded again."""
SAID_BY = (".cpg", ".cst")
"""Files of one line beside the table, which says the encoding."""

_DRIVERS = {
    437: "01 09 0b 0d 0f 11 15 18 19 1b",
    850: "02 0a 0e 10 12 14 16 1a 1d 25 37",
    852: "1f 22 23 40 64 87",
    860: "24",
    861: "67",
    863: "1c 6c",
    865: "08 17 66",
    866: "26 65",
    737: "6a 86",
    857: "6b 88",
    874: "50 7c",
    932: "13 7b",
    936: "4d 7a",
    949: "4e 79",
    950: "4f 78",
    1250: "c8",
    1251: "c9",
    1252: "03 58 59",
    1253: "cb",
    1254: "ca",
    1257: "cc",
}
"""Language drivers of a dBASE table by code page. 57, "ANSI", is that of whoever wrote it."""
_DRIVER_AT = 29
_NUMBER = re.compile(r"(?:ANSI|OEM|CP|WINDOWS|MS)?[ _-]*(\d{3,5})", re.IGNORECASE)


def attribute_codec(task: IngestTask, members: Mapping[str, Path], reader: shapefile.Reader) -> str:
    """Python's name of the encoding of the attributes in `reader`, which reads `AS_BYTES`."""
    if task.shapefile_encoding is not None:
        option = "ingest.shapefileEncoding"
        return codec_of(task.shapefile_encoding, task.dataset, option)
    for suffix in SAID_BY:
        if suffix in members:
            said = members[suffix].read_text("ascii", "replace").strip()
            return codec_of(_named(said), task.dataset, suffix)
    with members[".dbf"].open("rb") as file:
        driver = file.read(_DRIVER_AT + 1)[_DRIVER_AT:]
    page = next((n for n, each in _DRIVERS.items() if driver in bytes.fromhex(each)), None)
    if page is None or not driver.strip(b"\0") or _is_utf8(reader):
        return "utf-8"
    return f"cp{page}"


def decoded(value: str, codec: str, number: int, column: str, task: IngestTask) -> str:
    """Text of record `number`, from 1, that was read `AS_BYTES`."""
    try:
        return value.encode(AS_BYTES).decode(codec)
    except UnicodeError:
        raise IngestError(
            f"record {number} of '{task.source_name}' holds bytes in '{column}' that are not "
            f"{codec.upper()}: '{value}' byte by byte",
            code="E0425",
            location=Location(task.source_name, instance=f"record {number}"),
            help=f"say what they are: `ingest.shapefileEncoding: {{{task.dataset}: windows-1252}}`"
            " in odfbuild.yaml, or a .cpg file in the archive",
            dataset=task.dataset,
        ) from None


def _is_utf8(reader: shapefile.Reader) -> bool:
    texts = (text for record in reader.iterRecords() for text in record if isinstance(text, str))
    try:
        for text in texts:
            text.encode(AS_BYTES).decode()
    except UnicodeDecodeError:
        return False
    return True


def _named(said: str) -> str:
    """What Python calls an encoding that is named as in these files: `1252`, `OEM 850`, `88591`."""
    found = _NUMBER.fullmatch(said)
    if found is None:
        return said
    number = found[1]
    if number == "65001":
        return "utf-8"
    return f"iso8859-{number[4:]}" if number.startswith("8859") else f"cp{number}"
