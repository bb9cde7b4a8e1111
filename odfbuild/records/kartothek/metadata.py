"""The metadata file: the whole state of a dataset, as JSON or as msgpack compressed by zstd.

Decoding accepts whatever kartothek 5.3 reads, and the empty values that it stumbles over. Encoding
writes version 4, always with the list of partitions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from odfbuild.errors import TableError, missing_extra
from odfbuild.records.kartothek.names import FORMS, check_files, checked_file
from odfbuild.values import Value

VERSION = 4
Files = Mapping[str, str]
"""Data files of a partition, by table."""
Embedded = Mapping[str, tuple[str, ...]]
"""An index in the metadata itself: labels by the text of a value."""


class Metadata(Value):
    """A state of a dataset.

    `partitions` are files by label; `None` where they are to be listed, as older datasets have it.
    `user` is what was noted at the dataset by anybody.
    """

    uuid: str
    partitions: Mapping[str, Files] | None
    partition_keys: tuple[str, ...] = ()
    indices: Mapping[str, str | Embedded] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of tables as the first partition has them; none where there is no partition."""
        return tuple(next(iter((self.partitions or {}).values()), {}))

    def state(self) -> str:
        """A digest of all that is not a note: partitions, keys and indices."""
        parts = [
            digest(
                (f"{label}\0{table}", file)
                for label, files in (self.partitions or {}).items()
                for table, file in files.items()
            ),
            digest((column, json.dumps(index)) for column, index in self.indices.items()),
            json.dumps(self.partition_keys),
        ]
        return hashlib.sha256("".join(parts).encode()).hexdigest()


def digest(pairs: Iterable[tuple[str, str]]) -> str:
    """A text that stands for these pairs, in whatever order they come."""
    lines = "\0".join(sorted(f"{name}\0{value}" for name, value in pairs))
    return hashlib.sha256(lines.encode()).hexdigest()


def encode(metadata: Metadata, form: str = FORMS[0]) -> bytes:
    """The bytes of the file in one of `FORMS`."""
    content: dict[str, Any] = {
        "dataset_metadata_version": VERSION,
        "dataset_uuid": metadata.uuid,
        "metadata": dict(metadata.user),
        "partition_keys": list(metadata.partition_keys),
        "partitions": {
            label: {"files": files} for label, files in (metadata.partitions or {}).items()
        },
    }
    if metadata.indices:
        content["indices"] = {
            column: index if isinstance(index, str) else {k: list(v) for k, v in index.items()}
            for column, index in metadata.indices.items()
        }
    if form == FORMS[0]:
        return json.dumps(content, check_circular=False).encode()
    msgpack, zstandard = _libraries()
    packed: bytes = zstandard.ZstdCompressor(write_content_size=True).compress(
        msgpack.packb(content)
    )
    return packed


def decode(data: bytes, form: str, place: str) -> Metadata:
    """The state that a file has; `place` says in errors which file it is."""
    content = _content(data, form, place)
    if not isinstance(content, dict):
        raise _wrong(place, "it is not a map of keys and values")
    version = content.get("dataset_metadata_version")
    if isinstance(version, bool) or not isinstance(version, int | float):
        raise _wrong(place, "`dataset_metadata_version` is not a number")
    if version != VERSION:
        raise TableError(
            f"{place} has version {version} of kartothek's metadata; odfbuild reads version 4",
            code="E1333",
            help="write the dataset anew with kartothek 4 or 5"
            if version < VERSION
            else "install a newer release of odfbuild, if there is one that reads this version",
        )
    uuid = content.get("dataset_uuid")
    if not isinstance(uuid, str):
        raise _wrong(place, "`dataset_uuid` is not a text")
    partitions = _partitions(content.get("partitions"), place)
    return Metadata(
        uuid,
        partitions,
        _partition_keys(content.get("partition_keys"), place),
        _indices(_map(content, "indices", place), place),
        _map(content, "metadata", place),
    )


def _content(data: bytes, form: str, place: str) -> Any:
    if form == FORMS[0]:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _wrong(place, str(error)) from None
    msgpack, zstandard = _libraries()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as plain:
            return msgpack.unpackb(plain.read())
    except (zstandard.ZstdError, msgpack.UnpackException, ValueError) as error:
        raise _wrong(place, str(error)) from None


def _libraries() -> tuple[Any, Any]:
    try:
        import msgpack
        import zstandard
    except ImportError:
        raise missing_extra("tables", "metadata of kartothek in the form msgpack.zstd") from None
    return msgpack, zstandard


def _map(content: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    found = content.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _wrong(place, f"`{key}` is not a map")
    return found


def _partitions(found: Any, place: str) -> Mapping[str, Files] | None:
    if found is None:
        return None
    try:
        made = {label: each["files"] for label, each in found.items()}
        tables = set(next(iter(made.values()), {}))
        for label, files in made.items():
            if files.keys() != tables:
                raise _wrong(place, f"partition {label!r} has not the tables of the first one")
        check_files([file for files in made.values() for file in files.values()])
    except (AttributeError, KeyError, TypeError):
        raise _wrong(place, "`partitions` is not a map of labels to `files`") from None
    return made


def _partition_keys(found: Any, place: str) -> tuple[str, ...]:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _wrong(place, "`partition_keys` is not a list of names")
    return tuple(found)


def _indices(found: Mapping[str, Any], place: str) -> Mapping[str, str | Embedded]:
    made: dict[str, str | Embedded] = {}
    for column, index in found.items():
        if isinstance(index, str):
            made[column] = checked_file(index)
        elif isinstance(index, dict):
            made[column] = {value: tuple(labels) for value, labels in index.items()}
        else:
            raise _wrong(place, f"the index of {column!r} is neither a file nor a map")
    return made


def _wrong(place: str, why: str) -> TableError:
    return TableError(
        f"{place} is not a metadata file of kartothek: {why}",
        code="E1332",
        help="restore the file from a backup; if odfbuild publishes the table, you can also delete "
        "the file, and `odfbuild apply` writes the table anew",
    )
