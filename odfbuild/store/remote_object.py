"""An object of a source in a store, read where it lies: parts of it, by whoever needs them.

It must stay the object that was looked at: what is read of it counts only if it has the same ETag
behind.
"""

from __future__ import annotations

from typing import Any

from odfbuild.store.remote import connect, scheme_of
from odfbuild.values import Value


class RemoteObject(Value):
    """The object at `address`, such as `s3://bucket/key`, of so many bytes, with that ETag."""

    address: str
    size: int
    etag: str


class Replaced(OSError):
    """There is another object by now, or none."""


class OpenedObject:
    """An object that is read; errors are those of a client (see `remote.is_failure`)."""

    def __init__(self, source: RemoteObject) -> None:
        scheme = scheme_of(source.address)
        assert scheme is not None, "it lies in a store"
        self._source, self._path = source, source.address.partition("://")[2]
        self._client: Any = connect(scheme)

    def bytes(self, start: int, end: int) -> bytes:
        """The bytes `[start, end)`, at least one."""
        found: bytes = self._client.cat_file(self._path, start=start, end=end)
        if len(found) != end - start:
            raise Replaced(f"{len(found):,} bytes came instead of {end - start:,}")
        return found

    def file(self) -> Any:
        """A file of bytes that can be searched; what is read of it comes from the store."""
        return self._client.open(self._path, "rb", cache_type="readahead")

    def check(self) -> None:
        """Raise `Replaced` unless it is still the same."""
        found = self._client.info(self._path)
        about = {key.lower().replace("_", ""): value for key, value in found.items()}
        if (about.get("etag"), about.get("size")) != (self._source.etag, self._source.size):
            raise Replaced("it was replaced while it was read")
