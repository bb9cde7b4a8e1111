"""Stores of objects as places: a prefix of a bucket or container.

An upload shows when it is complete. Clients of fsspec have no conditional requests in common, so
`swap` speaks to each kind of store through the client below: `If-Match` and `If-None-Match` of S3,
generations of Google's, ETags of Azure's.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from odfbuild.store.place import PlacedFile, Progress, Unconditional, too_large
from odfbuild.store.remote import connect


class Bucket:
    """The objects whose keys begin with `prefix`, which begins with the bucket's name."""

    def __init__(self, address: str, client: Any, prefix: str) -> None:
        self.address = address
        self._client = client
        self._prefix = prefix

    @classmethod
    def at(cls, address: str) -> Bucket:
        """The place that an address names; `EnvironmentProblem` without the library."""
        parts = urlsplit(address)
        return cls(address, connect(parts.scheme), f"{parts.netloc}{parts.path}".rstrip("/"))

    def below(self, name: str) -> Bucket:
        """The objects below `name/`, through the same client."""
        return Bucket(f"{self.address.rstrip('/')}/{name}", self._client, f"{self._prefix}/{name}")

    def size(self, name: str) -> int | None:
        """Bytes of an object; `None` when it is not there."""
        try:
            return int(self._client.info(self._key(name))["size"])
        except FileNotFoundError:
            return None

    def read(self, name: str, limit: int) -> bytes | None:
        """A small object."""
        try:
            data: bytes = self._client.cat_file(self._key(name), start=0, end=limit + 1)
        except FileNotFoundError:
            return None
        except OSError:
            # No range of an empty object can be had.
            if self.size(name) == 0:
                return b""
            raise
        if len(data) > limit:
            raise too_large(name, limit)
        return data

    def download(
        self, name: str, target: Path, limit: int, progress: Progress | None = None
    ) -> bool:
        """Copy an object to `target`."""
        try:
            self._client.get_file(
                self._key(name), os.fspath(target), callback=_watch(name, limit, progress)
            )
        except FileNotFoundError:
            if target.parent.is_dir():
                return False
            raise
        return True

    def upload(self, file: Path, name: str, progress: Progress | None = None) -> None:
        """Copy `file` there."""
        callback = _watch(name, None, progress)
        self._client.put_file(os.fspath(file), self._key(name), callback=callback)

    def write(self, name: str, data: bytes) -> None:
        """Write a small object."""
        self._client.pipe_file(self._key(name), data)

    def swap(self, name: str, expected: bytes | None, new: bytes) -> bool:
        """Replace a small object by a conditional request."""
        swap = _SWAPS[urlsplit(self.address).scheme]
        return swap(self._client, self._key(name), expected, new)

    def list(self, name: str = "") -> list[str]:
        """Names directly below."""
        folder = self._key(name).rstrip("/")
        try:
            found = self._client.ls(folder, detail=True)
        except FileNotFoundError:
            return []
        below = (
            (str(each["name"]).rstrip("/").rpartition("/")[2], each["type"])
            for each in found
            if str(each["name"]).strip("/") != folder
        )
        return sorted(name + "/" * (kind == "directory") for name, kind in below)

    def files(self, name: str = "") -> Iterator[PlacedFile]:
        """All objects below."""
        for key, each in self._client.find(self._key(name).rstrip("/"), detail=True).items():
            written = next(filter(None, map(each.get, _WRITTEN)), None)
            below = key.removeprefix(f"{self._prefix}/")
            yield PlacedFile(below, int(each["size"] or 0), _seconds(written))

    def remove(self, name: str) -> None:
        """Remove an object."""
        with contextlib.suppress(FileNotFoundError):
            self._client.rm_file(self._key(name))

    def tidy(self) -> None:
        """Nothing: an upload that was cut off has no name, and the store removes it."""

    def tidy_now(self) -> None:
        """Nothing, for the same reason."""

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}"


_WRITTEN = ("LastModified", "last_modified", "updated", "mtime")
"""What clients call the time of an object."""


def _seconds(written: Any) -> float:
    """Seconds of Unix of a time as clients tell it; unknown times are those of now."""
    if isinstance(written, str):
        written = datetime.fromisoformat(written)
    return written.timestamp() if isinstance(written, datetime) else time.time()


def _watch(name: str, limit: int | None, progress: Progress | None) -> Any:
    """What clients tell how much there is, and how much of it they have transferred."""
    from fsspec.callbacks import Callback

    class Watch(Callback):  # type: ignore[misc]
        told = 0

        def call(self, *args: Any, **kwargs: Any) -> None:
            if limit is not None and max(self.value, self.size or 0) > limit:
                raise too_large(name, limit)
            more, self.told = self.value - self.told, self.value
            if progress is not None and more > 0:
                progress(more)

    return Watch()


# --- Compare-and-swap ---
#
# The version is asked for before the bytes are read: where somebody writes in between, the version
# is old, and the request is refused.

_Version = Any
"""What the client knows of an object; `None`: it is not there."""


def _swap(
    client: Any,
    key: str,
    expected: bytes | None,
    put: Callable[[_Version], None],
) -> bool:
    """Replace an object by `put`, which is given the version that holds `expected`."""
    version = None
    if expected is not None:
        try:
            version = client.info(key)
            if client.cat_file(key) != expected:
                return False
        except FileNotFoundError:
            return False
    try:
        put(version)
    except Exception as error:
        status = _status(error)
        if status in (409, 412):
            return False
        if status == 501 or type(error).__name__ == "ParamValidationError":
            raise Unconditional(str(error)) from None
        raise
    return True


def _status(error: BaseException) -> int | None:
    """The status of HTTP behind a client's error."""
    if isinstance(error, FileExistsError):
        return 412
    for each in (error, error.__cause__):
        answer = getattr(each, "response", None)
        if isinstance(answer, dict):  # of botocore
            return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if isinstance(found := getattr(each, "status_code", None), int):  # of azure
            return found
    return None


def _swap_s3(client: Any, key: str, expected: bytes | None, new: bytes) -> bool:
    bucket, _, name = key.partition("/")

    def put(version: _Version) -> None:
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version["ETag"]}
        client.call_s3("put_object", Bucket=bucket, Key=name, Body=new, **condition)

    return _swap(client, key, expected, put)


def _swap_gs(client: Any, key: str, expected: bytes | None, new: bytes) -> bool:
    bucket, _, name = key.partition("/")

    def put(version: _Version) -> None:
        client.call(
            "POST",
            f"{client._location}/upload/storage/v1/b/{{}}/o",
            bucket,
            uploadType="media",
            name=name,
            ifGenerationMatch="0" if version is None else str(version["generation"]),
            headers={"Content-Type": "application/octet-stream"},
            data=new,
        )

    return _swap(client, key, expected, put)


def _swap_az(client: Any, key: str, expected: bytes | None, new: bytes) -> bool:
    from azure.core import MatchConditions
    from fsspec.asyn import sync

    container, _, name = key.partition("/")

    async def upload(condition: dict[str, Any]) -> None:
        async with client.service_client.get_blob_client(container, name) as blob:
            await blob.upload_blob(new, **condition)

    def put(version: _Version) -> None:
        condition: dict[str, Any] = {"overwrite": version is not None}
        if version is not None:
            same = MatchConditions.IfNotModified
            condition |= {"etag": version["etag"], "match_condition": same}
        sync(client.loop, upload, condition)

    return _swap(client, key, expected, put)


_SWAPS: dict[str, Callable[[Any, str, bytes | None, bytes], bool]] = {
    "s3": _swap_s3,
    "gs": _swap_gs,
    "az": _swap_az,
    "abfs": _swap_az,
}
