"""The archive that blocks travel in: tar in gzip, an entry per block, named by its hash.

The tar is read here and not by a library, which would follow links, sparse files and names that
are none of ours. What is packed is bounded before it is unpacked.
Sources: reference behaviour, "metadata archive"; POSIX, "ustar".
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence

from odfbuild.errors import IntegrityError
from odfbuild.exchange.repositories.contract import RawBlock
from odfbuild.exchange.repositories.smart.messages import MetadataBatch
from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.odf.multihash import Multihash

MAX_UNPACKED = 128 << 20
"""Bytes of an archive, unpacked: so many that 100 000 blocks fit."""

_RECORD = 512
_GZIP = 31  # zlib's number for a gzip header and the largest window
_PLAIN = {"application/tar"}
_PACKED = {"application/tar+gzip", "application/gzip"}


def pack(blocks: Sequence[RawBlock]) -> MetadataBatch:
    """Blocks, oldest first, as they are sent."""
    entries = b"".join(part for block in blocks for part in _entry(block))
    # Blocks are mostly hashes: more effort saves a twentieth, and takes half of a server's time.
    packed = gzip.compress(entries + bytes(2 * _RECORD), compresslevel=1, mtime=0)
    return MetadataBatch(len(blocks), packed)


def unpack(batch: MetadataBatch) -> tuple[RawBlock, ...]:
    """The blocks of an archive, oldest first, each of which names the one before.

    `IntegrityError` E1045 when anything is not as it should be: names, hashes, order, number.
    """
    if batch.encoding not in ("raw", "base64") or batch.media_type not in _PLAIN | _PACKED:
        raise _wrong(f"it is {batch.media_type} in the encoding {batch.encoding}")
    packed = batch.media_type in _PACKED
    data = _unpacked(batch.payload) if packed else batch.payload
    blocks = tuple(_entries(memoryview(data)))
    if len(blocks) != batch.num_blocks:
        raise _wrong(f"it holds {len(blocks)} blocks, and {batch.num_blocks} were announced")
    _check_links(blocks)
    return blocks


def _entry(block: RawBlock) -> tuple[bytes, bytes, bytes]:
    """Header, content and padding, with nothing but name, size and checksum, as peers write it."""
    name, size = str(block.hash).encode(), b"%011o" % len(block.data)
    header = bytearray(_RECORD)
    header[: len(name)] = name
    header[124:135] = size
    header[136:147] = b"0" * 11
    header[257:265] = b"ustar  \0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header), block.data, bytes(-len(block.data) % _RECORD)


def _unpacked(payload: bytes) -> bytes:
    unzip = zlib.decompressobj(_GZIP)
    try:
        data = unzip.decompress(payload, MAX_UNPACKED)
    except zlib.error as error:
        raise _wrong(f"it is not gzip: {error}") from None
    if unzip.unconsumed_tail:
        raise _wrong(f"it unpacks to more than {MAX_UNPACKED >> 20} MiB")
    if not unzip.eof or unzip.unused_data:
        raise _wrong("it is cut off, or something follows it")
    return data


def _entries(data: memoryview) -> Iterator[RawBlock]:
    place = 0
    while place < len(data):
        header = bytes(data[place : place + _RECORD])
        if not any(header):
            rest = bytes(data[place:])
            if rest.count(0) < len(rest):
                raise _wrong("something follows its end")
            return
        name, size = _name_and_size(header)
        place += _RECORD
        content = bytes(data[place : place + size])
        if len(content) < size:
            raise _wrong("its last entry is cut off")
        hash = Multihash.sha3_256(content)
        if str(hash) != name:
            raise _wrong(f"an entry is named {name!r}, and its bytes hash to {hash}")
        yield RawBlock(hash, content)
        place += size + -size % _RECORD


def _name_and_size(header: bytes) -> tuple[str, int]:
    try:
        checksum = int(header[148:156].strip(b"\0 "), 8)
        size = int(header[124:136].strip(b"\0 "), 8)
    except ValueError:
        raise _wrong("an entry has no header of tar") from None
    if len(header) < _RECORD or checksum != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise _wrong("the header of an entry is damaged")
    name = header[:100].rstrip(b"\0").decode("ascii", "replace")
    if header[156:157] not in (b"\0", b"0") or size < 0:
        raise _wrong(f"the entry {name!r} is no regular file")
    return name, size


def _check_links(blocks: Sequence[RawBlock]) -> None:
    before: RawBlock | None = None
    for block in blocks:
        try:
            link = decode_block(block.data).prev_block_hash
        except ValueError as error:
            raise _wrong(f"block {block.hash} cannot be read: {error}") from None
        if before is not None and link != before.hash:
            raise _wrong(f"block {block.hash} does not follow the one before it in the archive")
        before = block


def _wrong(why: str) -> IntegrityError:
    return IntegrityError(
        f"the archive of blocks is wrong: {why}",
        code="E1045",
        notes=("nothing of it was stored",),
        help="try again; if it stays, the other side is defective",
    )
