"""The texts of queries that Spark accepted, though no parser here understands them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from odfbuild.store.disposable import read_disposable, write_disposable


class AcceptedTexts:
    """Kept in the folder `cache`, for one release of the engine; read when first asked."""

    def __init__(self, cache: Path, engine_version: str) -> None:
        self._file = cache / "accepted_texts.bin"
        self._stamp = f"odfbuild accepted texts 1\n{engine_version}\n".encode()
        self._known: set[str] | None = None

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and _digest(text) in self._digests()

    def add(self, texts: Iterable[str]) -> None:
        """Keep those that are not understood here."""
        from odfbuild.sql.parsed import parsed

        new = {_digest(text) for text in texts if parsed(text) is None} - self._digests()
        if new:
            self._digests().update(new)
            write_disposable(self._file, self._stamp, sorted(self._digests()))

    def _digests(self) -> set[str]:
        if self._known is None:
            self._known = set(read_disposable(self._file, self._stamp) or ())
        return self._known


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
