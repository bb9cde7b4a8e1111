"""Objects to and from the URLs that a server gives.

A server decides where objects are: on itself, or in a bucket by a URL that is signed and expires.
Headers that it gives go to that URL alone, and a server in the public network cannot send us to an
address in ours. Every byte that comes is hashed; what is too long or too slow is given up.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from odfbuild.errors import IntegrityError, RepositoryError
from odfbuild.exchange.repositories.contract import ObjectFile, Progress
from odfbuild.exchange.repositories.smart.connection import broken
from odfbuild.exchange.repositories.smart.messages import TransferUrl
from odfbuild.odf.multihash import SHA3_256, Multihash
from odfbuild.store.files import PENDING, make_folder, move_file
from odfbuild.store.storage import damaged_object

if TYPE_CHECKING:
    import httpx

AT_ONCE = 8
_CHUNK = 1 << 18
_SLOWEST = 1 << 10
"""Bytes per second, from the second minute on."""

_OURS = {"host", "content-length", "transfer-encoding", "connection", "upgrade"}
"""Headers that a server cannot give: they frame the request."""


class Transfers:
    """Transfers of objects to and from URLs that the server of `base` gives."""

    def __init__(
        self, http: httpx.Client, base: str, address: str, progress: Progress | None
    ) -> None:
        self._http = http
        self._base = base
        self._address = address
        self._progress = progress
        self._mutex = threading.Lock()
        self._stopped = threading.Event()
        self.done = 0
        """How many are complete."""

    def start(
        self,
        pool: ThreadPoolExecutor,
        work: Iterable[tuple[Callable[..., None], tuple[object, ...]]],
    ) -> list[Future[None]]:
        """Begin transfers; when one fails, the others end soon."""

        def run(function: Callable[..., None], arguments: tuple[object, ...]) -> None:
            try:
                function(*arguments)
            except BaseException:
                self.stop()
                raise
            with self._mutex:
                self.done += 1

        return [pool.submit(run, function, arguments) for function, arguments in work]

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopped.set()

    def download(self, source: TransferUrl, file: ObjectFile, target: Path) -> None:
        """Bring an object to `target`, which is made when all of it is there and right."""
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        hasher, size = hashlib.sha3_256(), 0
        try:
            with staged.open("wb") as out:
                for part in self._parts(source):
                    size += len(part)
                    if size > file.size:
                        raise self._other(file, f"it has more than {file.size} bytes")
                    hasher.update(part)
                    out.write(part)
                    self._tell(len(part))
            found = Multihash.of(SHA3_256, hasher.digest())
            if found != file.hash:
                raise self._other(file, f"its {size} bytes hash to {found}")
            move_file(staged, target)
        finally:
            staged.unlink(missing_ok=True)

    def upload(self, target: TransferUrl, file: ObjectFile, source: Path) -> None:
        """Send the file of an object."""
        import httpx

        headers = {
            **self._headers(target),
            "content-type": "application/octet-stream",
            "content-length": str(source.stat().st_size),
        }
        try:
            response = self._http.put(target.url, content=self._read(file, source), headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise broken(self._address, _words(error)) from None
        if not response.is_success:
            raise self._status(target, response.status_code, file)

    def _parts(self, source: TransferUrl) -> Iterator[bytes]:
        import httpx

        began, size = time.monotonic(), 0
        headers = {**self._headers(source), "accept-encoding": "identity"}
        try:
            with self._http.stream("GET", source.url, headers=headers) as response:
                if response.status_code != 200:
                    raise self._status(source, response.status_code)
                for part in response.iter_raw(_CHUNK):
                    self._check_stopped()
                    yield part
                    size += len(part)
                    if time.monotonic() - began > 60 + size / _SLOWEST:
                        raise broken(self._address, "an object comes too slowly")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise broken(self._address, _words(error)) from None

    def _read(self, wanted: ObjectFile, source: Path) -> Iterator[bytes]:
        """The file of an object; its end only if all of it is right: stores check no hashes."""
        hasher, kept = hashlib.sha3_256(), b""
        with source.open("rb") as file:
            while part := file.read(_CHUNK):
                self._check_stopped()
                hasher.update(part)
                if kept:
                    yield kept
                    self._tell(len(kept))
                kept = part
        found = Multihash.of(SHA3_256, hasher.digest())
        if found != wanted.hash:
            raise damaged_object(wanted.hash, source, found)
        yield kept
        self._tell(len(kept))

    def _headers(self, given: TransferUrl) -> dict[str, str]:
        check_url(given.url, self._base, self._address)
        return {h.name.lower(): h.value for h in given.headers if h.name.lower() not in _OURS}

    def _tell(self, size: int) -> None:
        if self._progress is not None:
            with self._mutex:
                self._progress(size)

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise broken(self._address, "another object failed")

    def _status(
        self, url: TransferUrl, status: int, sent: ObjectFile | None = None
    ) -> RepositoryError:
        parts = urlsplit(url.url)
        expired = "; its signed URL has expired" if _is_expired(url.expires_at) else ""
        return RepositoryError(
            f"an object cannot be {'sent' if sent else 'fetched'}: {parts.hostname} answered "
            f"{status}{expired}",
            code="E1046",
            notes=(f"repository: {self._address}", f"path: {parts.path}"),
            help="run the command again: complete objects are not transferred twice",
        )

    def _other(self, file: ObjectFile, why: str) -> IntegrityError:
        return IntegrityError(
            f"object {file.hash} of the repository is not what its block says",
            code="E1047",
            notes=(f"repository: {self._address}", why),
            help="tell the owner of the repository; nothing of it was stored",
        )


def check_url(url: str, base: str, address: str) -> None:
    """Raise `RepositoryError` E1048 unless a server at `base` may send us to that URL."""
    try:
        parts, home = urlsplit(url), urlsplit(base)
        host = parts.hostname or ""
        parts.port  # noqa: B018 (raises for a port that is none)
    except ValueError:
        raise _refused(url, address, "it is no URL") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise _refused(url, address, "it is no plain http:// or https:// URL")
    if home.scheme == "https" and parts.scheme != "https":
        raise _refused(url, address, "it leads from https:// to http://")
    if host == home.hostname:
        return
    there = _addresses(host)
    if any(each.is_link_local for each in there):
        raise _refused(url, address, "it is an address of this machine's own network link")
    if not _all_public(there) and _all_public(_addresses(home.hostname or "")):
        raise _refused(url, address, "a repository in the public network sends us to a private one")


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@cache
def _addresses(host: str) -> tuple[_Address, ...]:
    """Addresses of a host; none where only a proxy knows it."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found)


def _all_public(addresses: tuple[_Address, ...]) -> bool:
    return all(each.is_global for each in addresses)


def _refused(url: str, address: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"the repository names a URL for an object that is not used: {why}",
        code="E1048",
        notes=(f"repository: {address}", f"URL: {url.partition('?')[0].rpartition('@')[2][:200]}"),
        help="tell the owner of the repository",
    )


def _is_expired(text: str | None) -> bool:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return False
    return moment.astimezone(UTC) < datetime.now(UTC)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
