"""Files of an SFTP server: one of them, or all that match a pattern.

The key of the host has to be in `known_hosts`. Keys of the user, the agent and names of hosts come
from where OpenSSH has them, in `~/.ssh`: they belong to the machine, not to a dataset.

Time of modification and size are the state of a file, and its content decides whether it is read
again. Of a pattern, it is the name of the last file that was read, as in a store of objects.
Source: draft-ietf-secsh-filexfer-02; OpenSSH, ssh_config(5).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from odfbuild.errors import Code, IngestError, missing_extra
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators
from odfbuild.ingest.fetch.event_time import event_time_of, event_time_of_file
from odfbuild.ingest.fetch.files_glob import last_name, new_files
from odfbuild.ingest.fetch.result import Fetched, etag
from odfbuild.ingest.fetch.sftp_address import SftpPlace, sftp_place
from odfbuild.ingest.secrets import library_words, remember_password, resolve_address, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import (
    FetchStepFilesGlob,
    FetchStepUrl,
    SourceState,
)
from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    import asyncssh

T = TypeVar("T")
Begin = Callable[[], Coroutine[Any, Any, T]]

_CHUNK = 4 << 20
_FIRST_WAIT = 0.5
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
_WILD = re.compile(r"[*?\[]")


class _Again(Exception):
    """It may succeed when it is repeated."""


def fetch_sftp(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the file if it changed since `state`. Raises `IngestError`."""
    place = sftp_place(url, step.url)
    kept = KeptDownload(context, url)
    known = None if context.moved else state
    moment = _with_retries(lambda: _bring(place, known, context, kept, step.url), step.url, context)
    if kept.data.exists():
        event_time = event_time_of(
            step.event_time, modified=moment, default=moment, now=context.now, name=step.url
        )
        new = None if kept.about.etag is None else etag(kept.about.etag)
        yield kept.fetched(new, event_time, step.url)
    # Only reached once what was yielded is committed.
    kept.forget()


def fetch_sftp_files(
    step: FetchStepFilesGlob, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the new files of a pattern in order; `IngestError` when no file was ever there."""
    pattern = resolve_address(step.path)
    remember_password(pattern)
    place = sftp_place(pattern, step.path, is_pattern=True)
    matching = _with_retries(lambda: _listed(place, context.settings), step.path, context)
    if not matching and last_name(state) is None:
        raise IngestError(
            f"no file matches '{step.path}'",
            code="E0401",
            help="put the files there, or correct `fetch.path` in the definition",
        )
    start = len(_fixed(place.path))
    prefix = step.path[: len(step.path) - len(place.path)]
    for path in new_files(step, matching, state, start):
        one = SftpPlace(place.host, path, place.port, place.user, place.password)
        shown, name = f"{prefix}{path}", path[start:]
        kept = KeptDownload(context, f"{pattern} {path}")
        bring = partial(_bring, one, None, context, kept, shown)
        moment = _with_retries(bring, shown, context)
        yield Fetched(
            kept.data,
            etag(name),
            event_time_of_file(step.event_time, name, modified=moment, now=context.now),
            shown,
        )
        # Only reached once what was yielded is committed.
        kept.forget()


def look_at_sftp(template: str, settings: IngestSettings, *, is_pattern: bool) -> int:
    """How many files an address or a pattern names: 1 or more. Raises `OdfbuildError`."""
    address = resolve_address(template)
    remember_password(address)
    place = sftp_place(address, template, is_pattern=is_pattern)

    async def looked() -> int:
        if is_pattern:
            return len(await _listed(place, settings))
        async with _connected(place, settings) as sftp:
            await sftp.stat(place.path)
        return 1

    found = _attempt(looked, template)
    if not found:
        raise IngestError(f"no file matches '{template}'", code="E0401", help="correct the pattern")
    return found


def _with_retries(begin: Begin[T], shown: str, context: FetchContext) -> T:
    wait = _FIRST_WAIT
    attempts = context.settings.attempts
    for attempt in range(1, attempts + 1):
        try:
            return _attempt(begin, shown)
        except IngestError as error:
            if error.code != Code.SERVER_UNREACHABLE:
                raise
            if attempt == attempts:
                raise error.changed(notes=(f"tried {attempts} times",)) from None
        time.sleep(wait)
        wait *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


def _attempt(begin: Begin[T], shown: str) -> T:
    """What a coroutine gives. Raises `IngestError`; E0406 may succeed when it is repeated."""
    try:
        import asyncssh
    except ImportError:
        raise missing_extra("sftp", "sources on SFTP servers") from None
    try:
        return _run(begin())
    except asyncssh.HostKeyNotVerifiable as error:
        raise _untrusted(shown, error) from None
    except asyncssh.PermissionDenied as error:
        raise IngestError(
            scrub(f"the server of {shown} refuses the login: {error.reason}"),
            code="E0481",
            help="correct user and password in the address; without a password, have the agent or "
            "a key in ~/.ssh that the server accepts",
        ) from None
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
        raise IngestError(
            f"there is no file {shown}",
            code="E0404",
            help="put the file there, or correct the path: it is absolute, and begins with /~/ "
            "below the folder of the login",
        ) from None
    except asyncssh.SFTPPermissionDenied:
        raise IngestError(
            f"cannot fetch {shown}: the server does not let this user read it",
            code="E0405",
            help="correct the permissions on the server, or use another user",
        ) from None
    except (asyncssh.KeyImportError, asyncssh.ConfigParseError) as error:
        raise IngestError(
            scrub(f"cannot fetch {shown}: {error}"),
            code="E0481",
            help="correct the files in ~/.ssh",
        ) from None
    except (asyncssh.Error, OSError, TimeoutError, _Again) as error:
        said = str(error) or type(error).__name__
        if isinstance(error, asyncssh.ProtocolError):
            said = library_words(error, shown)
        raise IngestError(
            scrub(f"cannot fetch {shown}: {said}"),
            code=Code.SERVER_UNREACHABLE,
            help="check the address and the network, then run `odfbuild apply` again",
        ) from None


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as other:  # a notebook has a loop in this thread
        return other.submit(asyncio.run, coroutine).result()


def _untrusted(shown: str, error: Exception) -> IngestError:
    return IngestError(
        f"the key of the server of {shown} is not that of a known host",
        code="E0480",
        notes=(
            scrub(f"{error}"),
            "another key than before may mean that somebody else answers",
        ),
        help="compare the key with what the owner of the server tells, and add it to "
        "~/.ssh/known_hosts: `ssh-keyscan -p PORT HOST` prints the line",
    )


@asynccontextmanager
async def _connected(
    place: SftpPlace, settings: IngestSettings
) -> AsyncIterator[asyncssh.SFTPClient]:
    import asyncssh

    known = [path for each in _KNOWN_HOSTS if (path := Path(each).expanduser()).is_file()]
    options: dict[str, Any] = {
        # Never `None`, with which any key would do.
        "known_hosts": list(map(str, known)) or b"",
        "connect_timeout": settings.connect_seconds,
        "login_timeout": settings.idle_seconds,
        "keepalive_interval": max(1, settings.idle_seconds / 3),
        "preferred_auth": "publickey",
    }
    if place.port is not None:
        options["port"] = place.port
    if place.user is not None:
        options["username"] = place.user
    if place.password is not None:
        # Keys that are tried before it may use up the attempts that the server allows.
        options |= {"password": place.password, "client_keys": None, "agent_path": None}
        options["preferred_auth"] = "password,keyboard-interactive"
    async with (
        asyncssh.connect(place.host, **options) as connection,
        connection.start_sftp_client() as sftp,
    ):
        yield sftp


async def _listed(place: SftpPlace, settings: IngestSettings) -> list[str]:
    import asyncssh

    async with _connected(place, settings) as sftp:
        try:
            found = await sftp.glob_sftpname(place.path)
        except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
            return []
    folder = asyncssh.FILEXFER_TYPE_DIRECTORY
    return [_text(each.filename) for each in found if each.attrs.type != folder]


async def _bring(
    place: SftpPlace,
    state: SourceState | None,
    context: FetchContext,
    kept: KeptDownload,
    shown: str,
) -> Timestamp | None:
    """Time of modification; all bytes are in `kept.data` unless they are those of `state`."""
    async with _connected(place, context.settings) as sftp:
        about, moment = await _look(sftp, place.path)
        if about.etag is not None and etag(about.etag) == state:
            kept.forget()
            return moment
        if kept.about == about and kept.is_complete:
            return moment
        if kept.about != about or not kept.size:
            kept.begin(about)
        kept.write((), shown)
        async with sftp.open(place.path, "rb") as file:
            await file.seek(kept.part.stat().st_size)
            while chunk := await asyncio.wait_for(file.read(_CHUNK), context.settings.idle_seconds):
                assert isinstance(chunk, bytes)  # as the file was opened
                kept.write((chunk,), shown)
        if (await _look(sftp, place.path))[0] != about:
            kept.forget()  # it may be the beginning of one version and the end of another
            raise _Again("it was changed while it was read")
        got = kept.part.stat().st_size
        if about.total is not None and got != about.total:
            raise _Again(f"{got:,} bytes arrived instead of {about.total:,}")
        kept.finish()
        return moment


async def _look(
    sftp: asyncssh.SFTPClient, path: str
) -> tuple[ResponseValidators, Timestamp | None]:
    attributes = await sftp.stat(path)
    if attributes.mtime is None or attributes.size is None:
        return ResponseValidators(total=attributes.size), None
    nanos = attributes.mtime * 1_000_000_000 + (attributes.mtime_ns or 0)
    moment = Timestamp(nanos)
    text = f"{moment} {attributes.size}"
    return ResponseValidators(etag=text, total=attributes.size, resumable=True), moment


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _fixed(pattern: str) -> str:
    """The folder of a pattern that has no wildcards, with its slash."""
    folder, slash, _ = _WILD.split(pattern, maxsplit=1)[0].rpartition("/")
    return folder + slash
