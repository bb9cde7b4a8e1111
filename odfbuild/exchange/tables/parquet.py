"""Tables of plain Parquet files, for readers that know no format of tables.

    data/<random>.parquet      files that are never changed
    states/<id>.json           which of them make a state, and its pin
    current.json               the present one of `states`; moves by compare-and-swap

In a folder, which readers take as a whole, the last line is:

    states/<id>/               hard links to the files of a state
    current                    a symbolic link to the present one; moves by rename

A reader who follows `current` once, and reads what it led to, sees one state, whatever is published
meanwhile. Files have all columns, so that no reader has to guess the types of partition columns
from names of folders.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypedDict
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import TableError
from odfbuild.exchange.tables.contract import (
    Garbage,
    Key,
    TableMoved,
    TablePin,
    TableSpec,
    TableState,
    Touched,
)
from odfbuild.exchange.tables.faults import damaged
from odfbuild.records.slice_file import with_statistics
from odfbuild.store.files import PENDING, folder_lock, make_folder, sync
from odfbuild.store.place import Folder, Place
from odfbuild.store.remote import scheme_of
from odfbuild.store.storage import open_place

_VERSION = 1
_NO_LIMIT = sys.maxsize
_MOST_OF_A_STATE = 1 << 30
_OURS = ("data/", "states/", "current/", "current.json")
_MOST_OF_A_NAME = 120
_HIDDEN = (".", "_")
"""Readers of a folder pass over files whose names begin so: PyArrow, pandas, Spark, Hive."""
_UNIQUE = len(f"{bytes(16).hex()}.parquet")
_UNREADABLE = "0"
"""What a pointer that cannot be read is called."""


def open_table(spec: TableSpec) -> ParquetTable:
    """The table that `spec` describes."""
    address = spec.table.address
    if scheme_of(address) is None:
        folder = Path(address)
        return ParquetTable(spec, Folder(folder), _Link(folder))
    place = open_place(address, Path("/"))
    return ParquetTable(spec, place, _Object(place))


class _File(TypedDict):
    """A file of a state as it is described: its name, the key of its partition, its size.

    It stays what JSON made of it: a state has as many as there are partitions.
    """

    file: str
    key: list[Any]
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _State:
    """A state as it is described: `made` in seconds of Unix."""

    id: str
    pin: TablePin | None
    made: float
    files: tuple[_File, ...]

    def to_bytes(self) -> bytes:
        """JSON that readers without odfbuild understand, too."""
        assert self.pin is not None
        head = {"version": _VERSION, "id": self.id, "pin": self.pin.to_text(), "made": self.made}
        content = {**head, "files": self.files}
        return json.dumps(content, separators=(",", ":"), check_circular=False).encode()

    @classmethod
    def parse(cls, data: bytes) -> _State:
        """A state as `to_bytes` wrote it; `ValueError` for anything else."""
        try:
            found: Mapping[str, Any] = json.loads(data)
            if found["version"] != _VERSION:
                raise ValueError(f"it is of version {found['version']}, and not {_VERSION}")
            files: tuple[_File, ...] = tuple(found["files"])
            for each in files:
                each["file"], each["key"], each["records"], each["bytes"]
            pin = TablePin.from_text(found["pin"])
            return cls(found["id"], pin, found["made"], files)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it lacks {error}") from None


class _Pointer(Protocol):
    """Which state is the present one."""

    def read(self) -> str | None:
        """Its id; `None`: there is none."""

    def move(self, expected: str | None, state: _State) -> bool:
        """Make `state` the present one instead of the one with the id `expected`."""

    def strange(self, state: _State) -> str | None:
        """What readers would find that is not of `state`; `None`: nothing."""

    def forget(self, id: str) -> None:
        """Remove what `move` made for a state that is no longer needed."""


class ParquetTable:
    """A table of Parquet files in a folder or a store of objects."""

    def __init__(self, spec: TableSpec, place: Place, pointer: _Pointer) -> None:
        self._spec, self._place, self._pointer = spec, place, pointer
        self._known: _State | None = None

    def read_state(self) -> TableState | None:
        """The present state."""
        id = self._pointer.read()
        if id is None:
            others = [name for name in self._place.list() if name not in _OURS]
            if not others:
                return None
            what = f"the folder has other files, such as {others[0]}"
            return TableState(token="", pin=None, changed_by=what)
        try:
            state = self._described(id)
        except TableError as error:
            return TableState(token=id, pin=None, changed_by=error.message)
        return _told(state, self._pointer.strange(state))

    def content_of(self, state: TableState, keys: Sequence[Key] | None) -> Iterator[pa.RecordBatch]:
        """The records of these partitions."""
        wanted = None if keys is None else {_text(key) for key in keys}
        for each in self._described(state.token).files:
            if wanted is None or repr(each["key"]) in wanted:
                yield from self._batches(each["file"])

    def commit(
        self,
        expected: TableState | None,
        pin: TablePin,
        replaced: Sequence[Key] | None,
        content: Iterable[Touched],
    ) -> TableState:
        """Write new files, describe the state, and make it the present one."""
        old = expected.token if expected is not None and expected.token else None
        if self._pointer.read() != old:
            raise TableMoved
        kept: list[_File] = []
        if old is not None and replaced is not None:
            gone = {_text(key) for key in replaced}
            files = self._described(old).files
            kept = [each for each in files if repr(each["key"]) not in gone]
        written = [file for each in content for file in self._written(each)]
        number = 1 if old is None else int(old.partition("-")[0]) + 1
        state = _State(
            id=f"{number:08d}-{secrets.token_hex(4)}",
            pin=pin,
            made=time.time(),
            files=(*kept, *written),
        )
        self._place.write(_description(state.id), state.to_bytes())
        if not self._pointer.move(old, state):
            self._place.remove(_description(state.id))
            raise TableMoved
        self._known = state
        return _told(state, None)

    def collect(self, keep: timedelta, *, dry_run: bool = False) -> Garbage:
        """Remove states that were replaced before `keep`, and files that no other state names."""
        if self._pointer.read() is None:
            return Garbage()
        before = time.time() - keep.total_seconds()
        states = sorted(self._all_states(), key=lambda each: (each.made, each.id))
        # A state was in use until the next one was made.
        old = [each for each, then in pairwise(states) if then.made < before]
        kept = {file["file"] for each in states if each not in old for file in each.files}
        files = [
            each
            for each in self._place.files("data")
            if each.name not in kept and each.written < before
        ]
        if not dry_run:
            for state in old:
                self._pointer.forget(state.id)
                self._place.remove(_description(state.id))
            for file in files:
                self._place.remove(file.name)
            self._place.tidy()
        names = (*(_description(each.id) for each in old), *(each.name for each in files))
        return Garbage(names, sum(each.bytes for each in files))

    def missing(self, state: TableState) -> Iterator[str]:
        """Names of files that are not there, or have another size."""
        for each in self._described(state.token).files:
            if self._place.size(each["file"]) != each["bytes"]:
                yield each["file"]

    def _all_states(self) -> Iterator[_State]:
        """The states that are there; what cannot be read describes nothing that is needed."""
        for name in self._place.list("states"):
            if name.endswith(".json"):
                with contextlib.suppress(TableError):
                    yield self._parsed(name.removesuffix(".json"))

    def _described(self, id: str) -> _State:
        """A state, of which nothing ever changes."""
        if self._known is not None and self._known.id == id:
            return self._known
        self._known = self._parsed(id)
        return self._known

    def _parsed(self, id: str) -> _State:
        name = _description(id)
        data = self._place.read(name, _MOST_OF_A_STATE)
        if data is None:
            raise damaged(self._spec.table, f"{name} is not there")
        try:
            return _State.parse(data)
        except ValueError as error:
            raise damaged(self._spec.table, f"{name} cannot be read: {error}") from None

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        folder = self._spec.table.address
        file = Path(folder) / name
        if scheme_of(folder) is not None:
            file = self._spec.scratch / Path(name).name
            if not self._place.download(name, file, _NO_LIMIT):
                raise damaged(self._spec.table, f"{name} is not there")
        try:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches():
                    yield batch.select(self._spec.schema.names).cast(self._spec.schema)
        except (FileNotFoundError, pa.ArrowInvalid) as error:
            raise damaged(self._spec.table, f"{name}: {str(error).splitlines()[0]}") from None

    def _written(self, touched: Touched) -> Iterator[_File]:
        """Write one partition, in files of about the target size."""
        batches = iter(touched.batches)
        first = next(batches, None)
        while first is not None:
            name = f"data/{secrets.token_hex(16)}.parquet"
            file = self._spec.scratch / Path(name).name
            with pq.ParquetWriter(
                file,
                self._spec.schema,
                compression="zstd",
                write_statistics=with_statistics(self._spec.schema),
            ) as writer:
                records = 0
                while first is not None:
                    writer.write_batch(first)
                    records += first.num_rows
                    first = next(batches, None)
                    if file.stat().st_size >= self._spec.table.target_file_size:
                        break
            size = file.stat().st_size
            self._place.upload(file, name)
            file.unlink()
            yield _File(file=name, key=_plain(touched.key), records=records, bytes=size)


class _Object:
    """The pointer in a store of objects: a copy of the description."""

    _NAME = "current.json"

    def __init__(self, place: Place) -> None:
        self._place = place

    def read(self) -> str | None:
        """The id in the description."""
        return self._id(self._place.read(self._NAME, _MOST_OF_A_STATE))

    def move(self, expected: str | None, state: _State) -> bool:
        """Replace it on the condition that it is still the same."""
        old = self._place.read(self._NAME, _MOST_OF_A_STATE)
        return self._id(old) == expected and self._place.swap(self._NAME, old, state.to_bytes())

    def _id(self, data: bytes | None) -> str | None:
        try:
            return None if data is None else _State.parse(data).id
        except ValueError:
            return _UNREADABLE

    def strange(self, state: _State) -> str | None:
        """Nothing: readers go by the description."""
        return None

    def forget(self, id: str) -> None:
        """Nothing: a state has no folder."""


class _Link:
    """The pointer in a folder: a symbolic link to a folder with the files of a state."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._link = folder, folder / "current"

    def read(self) -> str | None:
        """The name of the folder that the link leads to."""
        try:
            return self._link.readlink().name
        except FileNotFoundError:
            return None

    def move(self, expected: str | None, state: _State) -> bool:
        """Make the folder of the state, then rename a link over the present one."""
        folder = self._folder / "states" / state.id
        make_folder(folder)
        self._link_files(state, expected, folder)
        sync(folder)
        link = self._folder / f"{PENDING}{state.id}"
        link.symlink_to(Path("states", state.id))
        with folder_lock(self._folder):
            if self.read() != expected:
                link.unlink()
                self.forget(state.id)
                return False
            link.replace(self._link)
        sync(self._folder)
        return True

    def _link_files(self, state: _State, expected: str | None, folder: Path) -> None:
        """Link the files of a state into a folder; most are called as in the state before."""
        called: dict[str, str] = {}
        with contextlib.suppress(OSError):  # a state that is written anew may be damaged
            before = [] if expected is None else _names(self._folder / "states" / expected)
            called = {_unique(name): name for name in before if not name.startswith(_HIDDEN)}
        with _opened(self._folder) as source, _opened(folder) as target:
            for each in state.files:
                name = called.get(_unique(each["file"])) or _link_name(each)
                os.link(each["file"], name, src_dir_fd=source, dst_dir_fd=target)

    def strange(self, state: _State) -> str | None:
        """A file that was put into the folder of the state, or taken from it."""
        names = _names(self._folder / "states" / state.id)
        expected = {_unique(each["file"]) for each in state.files}
        if len(names) == len(expected) and set(map(_unique, names)) == expected:
            return None
        wanted, found = set(map(_link_name, state.files)), set(names)
        for name in sorted(found - wanted):
            return f"current/{name} is a file that odfbuild did not write"
        for name in sorted(wanted - found):
            return f"current/{name} was removed"
        return None

    def forget(self, id: str) -> None:
        """Remove the folder of a state."""
        shutil.rmtree(self._folder / "states" / id, ignore_errors=True)


def _description(id: str) -> str:
    return f"states/{id}.json"


def _told(state: _State, changed_by: str | None) -> TableState:
    return TableState(
        token=state.id,
        pin=state.pin,
        changed_by=changed_by,
        partitions=len({repr(each["key"]) for each in state.files}),
        files=len(state.files),
        records=sum(each["records"] for each in state.files),
        bytes=sum(each["bytes"] for each in state.files),
    )


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [each.name for each in entries]


def _link_name(file: _File) -> str:
    """What a file is called for people: by the values of its partition."""
    values = [quote("null" if v is None else str(v), safe=" ,+") for v in file["key"]]
    label = "_".join(values)[:_MOST_OF_A_NAME]
    if label.startswith(_HIDDEN):
        label = f"%{ord(label[0]):X}{label[1:]}"
    unique = Path(file["file"]).name
    return f"{label}-{unique}" if label else unique


def _unique(name: str) -> str:
    """What no other file has at the end of its name, nor do links to other files."""
    return name[-_UNIQUE:]


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def _plain(key: Iterable[Any]) -> list[Any]:
    """A key as it is described: JSON has no dates and times, so they are texts."""
    values: list[Any] = json.loads(json.dumps(list(key), default=str))
    return values


def _text(key: Iterable[Any]) -> str:
    """The text of a key, by which described keys are compared; it tells 1 from true."""
    return repr(_plain(key))
