"""What this engine has to remember from step to step, as one file: a tar archive.

A request holds new records only. Windows and changelogs need earlier ones, and the watermark of an
input that stands still; both are kept here. `odfbuild.json` comes first and lists all files, which
are slices as the coordinator gave them. The same state has the same bytes.
Sources: Open Data Fabric, "Checkpoint"; RFC-006; the archive of the reference's Spark engine.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from odfbuild.engine.contract import SliceFile
from odfbuild.errors import EngineError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

_FORMAT = 1
_HEAD = "odfbuild.json"
_LARGEST_HEAD = 64 << 20
_LARGEST_WATERMARK = 1024
_COPIED = 1 << 20
_HEADER = struct.Struct("100s8s8s8s12s12s8s1s100s6s2s247x")
"""The header of a file in a tar archive.

Name, rights, owner, group, size, time, checksum, kind, link, format and its version.
"""


class Kept(StrEnum):
    """Which of the records that were consumed before are here.

    `OPEN`: those that a window can hold that is still to close.
    """

    ALL = "all"
    OPEN = "open"
    NONE = "none"


class InputState(Value, kw_only=True):
    """An input as the last step left it.

    `next_offset` is that of the first record that was not read; `None`: nobody knows.
    """

    next_offset: int | None = 0
    watermark: Timestamp | None = None
    kept: Kept = Kept.ALL
    slices: tuple[SliceFile, ...] = ()


class Listed(Value):
    """What a checkpoint says of a file in it."""

    size: int
    sha256: str

    @classmethod
    def of(cls, file: Path) -> Listed:
        """By its content."""
        with file.open("rb") as source:
            return cls(file.stat().st_size, hashlib.file_digest(source, "sha256").hexdigest())

    def as_data(self) -> dict[str, Any]:
        """As `odfbuild.json` has it."""
        return {"size": self.size, "sha256": self.sha256}


class State(Value, kw_only=True):
    """What a step leaves to the next one.

    `query` identifies the transformation that it was made by, `schema` is that of the result: an
    Arrow schema as bytes. `results` are the records of the result so far, of which the next one is
    to have `next_offset`; `None`: nobody knows.
    """

    query: str = ""
    next_offset: int | None = 0
    watermark: Timestamp | None = None
    schema: bytes | None = None
    inputs: Mapping[DatasetId, InputState] = field(default_factory=dict)
    kept_results: Kept = Kept.ALL
    results: tuple[Path, ...] = ()
    known: Mapping[Path, Listed] = field(default_factory=dict)
    """Files of which it is known already what a checkpoint lists."""

    @property
    def files(self) -> Iterator[Path]:
        """All files that are kept, in the order in which they are written."""
        for _, each in sorted(self.inputs.items()):
            yield from (slice.path for slice in each.slices)
        yield from self.results

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(file.stat().st_size for file in self.files)


# --- Writing ---


def write_checkpoint(state: State, target: Path) -> None:
    """Write `state` to a new file."""
    files = [(each, state.known.get(each) or Listed.of(each)) for each in state.files]
    names = map(str, range(len(files)))
    head = {
        "format": _FORMAT,
        "query": state.query,
        "nextOffset": state.next_offset,
        "watermark": _text(state.watermark),
        "schema": state.schema.hex() if state.schema is not None else None,
        "inputs": [
            {
                "id": str(id),
                "nextOffset": each.next_offset,
                "watermark": _text(each.watermark),
                "kept": each.kept,
                "slices": [
                    {"file": next(names), "promised": _text(one.promised)} for one in each.slices
                ],
            }
            for id, each in sorted(state.inputs.items())
        ],
        "results": {"kept": state.kept_results, "files": [next(names) for _ in state.results]},
        "files": [listed.as_data() for _, listed in files],
    }
    content = (json.dumps(head, indent=1) + "\n").encode()
    with target.open("wb") as archive:
        archive.write(_header(_HEAD, len(content)))
        _copy(io.BytesIO(content), archive, len(content))
        _fill(archive, tarfile.BLOCKSIZE)
        for number, (file, listed) in enumerate(files):
            archive.write(_header(str(number), listed.size))
            with file.open("rb") as source:
                if _copy(source, archive, listed.size) != listed.sha256:
                    raise OSError(f"{file} was changed while it was read")
            _fill(archive, tarfile.BLOCKSIZE)
        archive.write(bytes(2 * tarfile.BLOCKSIZE))
        _fill(archive, tarfile.RECORDSIZE)


def _header(name: str, size: int) -> bytes:
    """What comes before a file, as `tarfile` writes it, which takes ten times as long.

    Without times and owners, which would make other bytes of the same state.
    """
    octal = b"%011o\0" % size if size < 1 << 33 else b"\x80" + size.to_bytes(11, "big")
    nobody = b"0000000\0"

    def with_checksum(checksum: bytes) -> bytes:
        return _HEADER.pack(
            name.encode(), b"0000644\0", nobody, nobody, octal, b"%011o\0" % 0, checksum,
            b"0", b"", b"ustar\0", b"00",
        )  # fmt: skip

    return with_checksum(b"%06o\0 " % sum(with_checksum(b" " * 8)))


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> str:
    """Copy so many bytes; gives their digest."""
    digest = hashlib.sha256()
    while size:
        block = source.read(min(size, _COPIED))
        if not block:
            raise OSError("it ends in the middle of a file")
        digest.update(block)
        target.write(block)
        size -= len(block)
    return digest.hexdigest()


def _fill(archive: IO[bytes], multiple: int) -> None:
    archive.write(bytes(-archive.tell() % multiple))


def _text(moment: Timestamp | None) -> str | None:
    return None if moment is None else str(moment)


# --- Reading ---


def read_checkpoint(file: Path, scratch: Path, inputs: Sequence[DatasetId]) -> State:
    """What a checkpoint says; its files are put into the folder `scratch`, under names of ours.

    Of a checkpoint of the reference's Spark engine the watermarks of `inputs` are taken.
    Raises `EngineError` E1405 for anything else.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            first = archive.next()
            if first is None:
                raise _foreign(file, "it is empty")
            if first.name != _HEAD:
                return _of_reference(archive, inputs, file)
            head = _content(archive, first, _LARGEST_HEAD, file)
        end = first.offset_data + first.size
        with file.open("rb") as source:
            source.seek(end + -end % tarfile.BLOCKSIZE)
            return _ours(head, source, scratch, file)
    except OSError as error:
        raise _foreign(file, error.strerror or str(error)) from None
    except (tarfile.TarError, EOFError, OverflowError) as error:
        raise _foreign(file, str(error)) from None


def _ours(content: bytes, source: IO[bytes], scratch: Path, file: Path) -> State:
    """By the content of `odfbuild.json`; the files come next in `source`."""
    try:
        head = json.loads(content)
        if head["format"] != _FORMAT:
            raise _foreign(
                file, f"it has format {head['format']}, and this release reads {_FORMAT}"
            )
        listed = [Listed(int(each["size"]), str(each["sha256"])) for each in head["files"]]
        paths = [scratch / f"kept-{number}" for number in range(len(listed))]
        state = _state_of(head, paths)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _foreign(file, f"'{_HEAD}' in it is damaged ({type(error).__name__})") from None
    for number, (said, path) in enumerate(zip(listed, paths, strict=True)):
        # Links, holes and other names have another header.
        if source.read(_HEADER.size) != _header(str(number), said.size):
            raise _foreign(file, f"it lacks file {number} of {len(listed)}, or has another one")
        with path.open("xb") as copy:
            if _copy(source, copy, said.size) != said.sha256:
                raise _foreign(file, f"file {number} in it is damaged")
        source.seek(-source.tell() % tarfile.BLOCKSIZE, os.SEEK_CUR)
    if any(source.read(tarfile.BLOCKSIZE)):
        raise _foreign(file, "it has more files than it lists")
    return replace(state, known=dict(zip(paths, listed, strict=True)))


def _state_of(head: Mapping[str, Any], paths: Sequence[Path]) -> State:
    schema = head["schema"]
    return State(
        query=str(head["query"]),
        next_offset=int(head["nextOffset"]),
        watermark=_moment(head["watermark"]),
        schema=None if schema is None else bytes.fromhex(schema),
        inputs={
            DatasetId.parse(each["id"]): InputState(
                next_offset=None if each["nextOffset"] is None else int(each["nextOffset"]),
                watermark=_moment(each["watermark"]),
                kept=Kept(each["kept"]),
                slices=tuple(
                    SliceFile(_of(paths, one["file"]), _moment(one["promised"]))
                    for one in each["slices"]
                ),
            )
            for each in head["inputs"]
        },
        kept_results=Kept(head["results"]["kept"]),
        results=tuple(_of(paths, name) for name in head["results"]["files"]),
    )


def _of(paths: Sequence[Path], name: str) -> Path:
    if int(name) < 0:
        raise ValueError(name)
    return paths[int(name)]


def _moment(text: str | None) -> Timestamp | None:
    return None if text is None else Timestamp.parse(text)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, most: int, file: Path) -> bytes:
    if member.size > most:
        raise _foreign(file, f"'{member.name}' in it is too large")
    # A sparse file says that it is larger than its bytes.
    source = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if source is None:
        raise _foreign(file, f"'{member.name}' in it is not a plain file")
    return source.read()


def _of_reference(archive: tarfile.TarFile, inputs: Sequence[DatasetId], file: Path) -> State:
    """The last watermarks of inputs, which is all that the reference's Spark engine keeps."""
    found: dict[DatasetId, Timestamp] = {}
    known = {name: id for id in inputs for name in (str(id), id.multibase, id.did_key)}
    for member in archive.getmembers():
        name = member.name.removeprefix("./")
        if member.isdir() and name in ("", "."):
            continue
        id = known.get(name.removesuffix(".watermark"))
        if not name.endswith(".watermark") or id is None:
            raise _foreign(file, f"it holds '{member.name[:80]}', which this engine does not know")
        text = _content(archive, member, _LARGEST_WATERMARK, file).decode("utf-8", "replace")
        try:
            found[id] = Timestamp.parse(text.strip())
        except ValueError as error:
            raise _foreign(file, str(error)) from None
    lowest = min(found.values()) if found.keys() == set(inputs) else None
    return State(
        next_offset=None,
        watermark=lowest,
        inputs={
            id: InputState(next_offset=None, watermark=found.get(id), kept=Kept.NONE)
            for id in inputs
        },
        kept_results=Kept.NONE,
    )


def _foreign(file: Path, why: str) -> EngineError:
    return EngineError(
        f"the checkpoint {file} cannot be used: {why}",
        code="E1405",
        help="reset the dataset, so that it is computed from the beginning by one engine",
    )
