"""Data of an FTP server, plain or over TLS.

The time of modification (`MDTM`, RFC 3659) is the state; a server that does not tell it offers
nothing to compare with. Where it also tells the size, a download that broke off goes on (`REST`).
"""

from __future__ import annotations

import ftplib
import re
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import SplitResult, unquote, urlsplit

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.download_cache import KeptDownload, ResponseValidators
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.result import Fetched, last_modified
from odfbuild.ingest.secrets import library_words, scrub
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.odf.timestamp import Timestamp

_CHUNK = 1 << 20
_FIRST_WAIT = 0.5
_MDTM = re.compile(r"213 (\d{14})(\.\d{1,6})?\d*")


def fetch_ftp(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the file if it was modified since `state`. Raises `IngestError`."""
    parts = urlsplit(url)
    kept = KeptDownload(context, url)
    moment = _with_retries(parts, step.url, state, context, kept)
    if kept.data.exists():
        event_time = event_time_of(
            step.event_time, modified=moment, default=moment, now=context.now, name=step.url
        )
        new = None if moment is None else last_modified(moment)
        yield kept.fetched(new, event_time, step.url)
    # Only reached once what was yielded is committed.
    kept.forget()


def _with_retries(
    parts: SplitResult,
    shown: str,
    state: SourceState | None,
    context: FetchContext,
    kept: KeptDownload,
) -> Timestamp | None:
    wait = _FIRST_WAIT
    attempts = context.settings.attempts
    for attempt in range(1, attempts + 1):
        try:
            return _attempt(parts, shown, state, context, kept)
        except ftplib.error_perm as error:
            raise IngestError(
                scrub(f"cannot fetch {shown}: the server answered {error}"),
                code="E0405",
                help="correct `fetch.url`: user, password and path",
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise IngestError(
                scrub(f"cannot fetch {shown}: its certificate is not trusted: {error}"),
                code="E0405",
                help="correct the address, or name the authority's certificates in the environment "
                "variable SSL_CERT_FILE",
            ) from None
        except ValueError as error:
            raise IngestError(
                scrub(
                    f"cannot fetch {shown}: it is not an FTP address: {library_words(error, shown)}"
                ),
                code="E0407",
                help="correct `fetch.url` in the definition",
            ) from None
        except (OSError, EOFError, ftplib.Error) as error:
            if attempt == attempts:
                raise IngestError(
                    scrub(f"cannot fetch {shown}: {error or type(error).__name__}"),
                    code=Code.SERVER_UNREACHABLE,
                    notes=(f"tried {attempts} times",),
                    help="check the address and the network, then run `odfbuild apply` again",
                ) from None
        time.sleep(wait)
        wait *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


def _attempt(
    parts: SplitResult,
    shown: str,
    state: SourceState | None,
    context: FetchContext,
    kept: KeptDownload,
) -> Timestamp | None:
    """Time of modification; all bytes are in `kept.data` unless they are those of `state`."""
    # Relative to where the login leads; %2F at the beginning makes it absolute (RFC 1738, 3.2.2).
    path = unquote(parts.path.removeprefix("/"))
    with _connect(parts, context) as ftp:
        ftp.voidcmd("TYPE I")
        moment, size = _modified(ftp, path), _size(ftp, path)
        if moment is not None and last_modified(moment) == state:
            kept.forget()
            return moment
        about = ResponseValidators(
            last_modified=None if moment is None else str(moment),
            total=size,
            resumable=moment is not None and size is not None,
        )
        if kept.about == about and kept.is_complete:
            return moment
        if kept.about != about or not kept.size:
            kept.begin(about)
        with ftp.transfercmd(f"RETR {path}", kept.size or None) as connection:
            # TLS needs no farewell here: the size and the server's last word tell what is missing.
            kept.write(iter(lambda: connection.recv(_CHUNK), b""), shown)
        ftp.voidresp()
        got = kept.part.stat().st_size
        if size is not None and got != size:
            raise EOFError(f"{got:,} bytes arrived instead of {size:,}")
        kept.finish()
        return moment


def _connect(parts: SplitResult, context: FetchContext) -> ftplib.FTP:
    settings = context.settings
    seconds = settings.connect_seconds
    ftp: ftplib.FTP
    if parts.scheme == "ftps":
        # Without a context of ours, any certificate would do.
        ftp = ftplib.FTP_TLS(timeout=seconds, context=ssl.create_default_context())
    else:
        ftp = ftplib.FTP(timeout=seconds)
    ftp.connect(parts.hostname or "", parts.port or ftplib.FTP_PORT)
    assert ftp.sock is not None
    ftp.sock.settimeout(settings.idle_seconds)
    ftp.timeout = settings.idle_seconds  # of the connections that carry data
    ftp.login(unquote(parts.username or ""), unquote(parts.password or ""))
    if isinstance(ftp, ftplib.FTP_TLS):
        ftp.prot_p()
    return ftp


def _modified(ftp: ftplib.FTP, path: str) -> Timestamp | None:
    try:
        match = _MDTM.match(ftp.sendcmd(f"MDTM {path}"))
    except ftplib.error_perm:
        return None
    if match is None:
        return None
    moment = datetime.strptime(match.group(1), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return Timestamp.from_datetime(moment)


def _size(ftp: ftplib.FTP, path: str) -> int | None:
    try:
        return ftp.size(path)
    except ftplib.error_perm:
        return None
