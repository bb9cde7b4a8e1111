"""Bytes that nobody should have written: mutated blocks and slices, each with its own seed.

As a program (`python -m tests.inspect.verify.hostile FOLDER FIRST LAST`) it checks so many mutated
slices, within limits of memory, where a library that crashes takes no test with it.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import DataSlice, OffsetInterval
from odfbuild.odf.multihash import Multihash
from odfbuild.project.decode import decode_file
from odfbuild.records.intact import check_slice

SECONDS = 2.0
KILOBYTES = 500 * 1024
_RECORDS = 500


def mutated(data: bytes, seed: int) -> bytes:
    """`data` with some of its bytes changed, lengths made huge, parts cut out or repeated."""
    chance = random.Random(seed)
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(made))
        match chance.randrange(6):
            case 0 | 1:
                made[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 2:
                made[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"))
            case 3:
                made[at : at + 9] = b"\xff" * 8 + b"\x7f"
            case 4:
                del made[at : at + chance.randrange(1, 40)]
            case 5:
                made[at:at] = made[chance.randrange(len(made)) :][: chance.randrange(40)]
        made = made or bytearray(b"\0")
    return bytes(made)


def slices() -> list[bytes]:
    """Data objects in different codecs, with text, lists and dictionaries."""
    count = range(_RECORDS)
    table = pa.table(
        {
            "offset": pa.array(count, pa.int64()),
            "op": pa.array([0] * _RECORDS, pa.int32()),
            "system_time": pa.array(count, pa.timestamp("ms", "UTC")),
            "event_time": pa.array(count, pa.timestamp("ms", "UTC")),
            "city": pa.array([f"city {n % 7}" for n in count]),
            "tags": pa.array([[str(n % 3)] * (n % 4) for n in count]),
            "amount": pa.array([n / 7 for n in count], pa.float64()),
        }
    )
    made = []
    for codec in ("snappy", "zstd", "none", "gzip"):
        sink = pa.BufferOutputStream()
        encoding = {"offset": "DELTA_BINARY_PACKED"} if codec == "zstd" else None
        options = {"column_encoding": encoding, "use_dictionary": ["city", "tags.list.element"]}
        pq.write_table(table, sink, compression=codec, data_page_size=900, **options)
        made.append(sink.getvalue().to_pybytes())
    return made


def committed(data: bytes, records: int = _RECORDS) -> DataSlice:
    """What a block says that refers to these very bytes."""
    return DataSlice(
        logical_hash=Multihash.sha3_256(b"another"),
        physical_hash=Multihash.sha3_256(data),
        offset_interval=OffsetInterval(start=0, end=records - 1),
        size=len(data),
    )


def main(folder: Path, first: int, last: int) -> None:
    """Check slices with these seeds; a line of JSON tells what came of each."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    whole = slices()
    path = folder / f"slice-{first}"
    path.write_bytes(whole[0])
    check_slice(path, committed(whole[0]), "offset", logical=True)  # loads all that is needed
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(first, last):
        data = mutated(whole[seed % len(whole)], seed)
        path.write_bytes(data)
        started = time.process_time()
        fault = check_slice(path, committed(data), "offset", logical=True)
        try:
            decode_file(path)
            decoded = None
        except OdfbuildError as error:
            decoded = error.code
        seconds = time.process_time() - started
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        told = {"code": fault and fault.code, "what": fault and fault.what, "decoded": decoded}
        print(json.dumps({"seed": seed, "seconds": seconds, "kilobytes": more, **told}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
