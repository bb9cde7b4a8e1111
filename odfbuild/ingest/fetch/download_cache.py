"""Downloads that later runs can resume.

A folder of the cache for each dataset holds `part`, the bytes so far, or `data`, all of them, and
`about.bin`: what the server said they are. The next run resumes a partial download, and only checks
whether a finished one is still current. The download of another address is discarded; of the
address, which may hold a secret, only a seal is stored.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from odfbuild.errors import IngestError
from odfbuild.ingest.content import content_of
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.result import Fetched
from odfbuild.odf.model import SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.machine_key import seal
from odfbuild.values import Value

_STAMP = b"odfbuild download 1\n"


class ResponseValidators(Value):
    """What the server said of the bytes: validators, and their number if it told."""

    etag: str | None = None
    last_modified: str | None = None
    total: int | None = None
    resumable: bool = False


class KeptDownload:
    """The download of one dataset from one address."""

    def __init__(self, context: FetchContext, address: str) -> None:
        # Nobody else can tell what it is called, and so put anything into it.
        name = seal("downloads", context.dataset.lower().encode())
        self.folder = (
            context.cache / "downloads" / name.hex()[:32] if name else context.scratch / "download"
        )
        self.data = self.folder / "data"
        self.part = self.folder / "part"
        self._about_file = self.folder / "about.bin"
        self._context = context
        self._sealed_address = seal("address of a download", address.encode())
        self._deadline = time.monotonic() + context.settings.total_seconds
        self.about = self._load() or ResponseValidators()
        if self.about == ResponseValidators():
            self.forget()

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are here, with something to ask the server about them."""
        known = self.about.etag or self.about.last_modified
        return known is not None and self.data.exists()

    @property
    def size(self) -> int:
        """Bytes of an unfinished download that can be resumed; 0 to start again."""
        if not self.about.resumable or not self.part.exists():
            return 0
        return self.part.stat().st_size

    def begin(self, about: ResponseValidators) -> None:
        """Start again, with bytes as described by `about`."""
        self.forget()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_disposable(self._about_file, _STAMP, (self._sealed_address, about))
        self.about = about

    def write(self, chunks: Iterable[bytes], shown: str) -> None:
        """Append `chunks` up to the end; raises `IngestError` beyond a limit, keeps what came."""
        settings = self._context.settings
        check_size(self.about.total or 0, settings.max_bytes, shown)
        size = self.size
        with self.part.open("ab" if size else "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                check_size(size, settings.max_bytes, shown)
                check_deadline(self._deadline, settings.total_seconds, shown)
                file.write(chunk)

    def finish(self) -> Path:
        """The file, once all bytes are here."""
        os.replace(self.part, self.data)  # noqa: PTH105  # the target may exist
        return self.data

    def fetched(self, state: SourceState | None, moment: Timestamp, shown: str) -> Fetched:
        """What is here, of `state` and event time `moment`; no data if its bytes were read last."""
        content = None if state is None else content_of(self.data)
        if content is not None and content == self._context.content:
            note = "the source gave another state for the same bytes"
            return Fetched(None, state, None, shown, content, note)
        return Fetched(self.data, state, moment, shown, content)

    def remaining_seconds(self) -> float:
        """Until the download has taken too long; may be negative."""
        return self._deadline - time.monotonic()

    def forget(self) -> None:
        """Delete everything; called once the data is committed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.about = ResponseValidators()

    def _load(self) -> ResponseValidators | None:
        form = tuple[bytes, ResponseValidators]
        address, about = read_disposable(self._about_file, _STAMP, form) or (None, None)
        return about if address == self._sealed_address else None


def check_size(size: int, limit: int, shown: str) -> None:
    """Raise `IngestError` when `size` bytes are over the limit for downloads."""
    if size > limit:
        raise IngestError(
            f"cannot fetch {shown}: it has more than {limit:,} bytes",
            code="E0409",
            help="raise `ingest.maxBytes` in odfbuild.yaml if that much is expected",
        )


def check_deadline(deadline: float, seconds: float, shown: str) -> None:
    """Raise `IngestError` once the monotonic clock is past `deadline`."""
    if time.monotonic() > deadline:
        raise IngestError(
            f"cannot fetch {shown}: it takes more than {seconds:g} seconds",
            code="E0409",
            help="raise `ingest.totalSeconds` in odfbuild.yaml; what has arrived is kept, and "
            "the next run goes on from there where the server allows it",
        )
