"""A dataset that reads changes, as far as fetching sees it, and what its records amount to."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from odfbuild.ingest.fetch.database.changes.manage import ChangesSource
from odfbuild.odf.model import FetchStepUrl
from tests.ingest.contexts import SETTINGS, Poller
from tests.servers.changes import slot_of


class Reader:
    """Each change must fit what was before it, so nothing can be lost, doubled or out of order."""

    def __init__(
        self,
        root: Path,
        database: Any,
        table: str = "orders",
        key: str = "id",
        url: str = "",
        **settings: Any,
    ) -> None:
        """`url`: of a database without a slot."""
        self.url = url or database.url(f"?changes={slot_of(database)}#{table}")
        if not url:
            self.source = ChangesSource("some.data", self.url, SETTINGS)
        self.poller = Poller(root, FetchStepUrl(url=self.url), **settings)
        self.key = key
        self.state: dict[Any, dict[str, Any]] = {}
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.wholes = 0

    def create(self, *, again: bool = False) -> str:
        return self.source.create(again=again)

    def poll(self, crash: str | None = None) -> int:
        """One run; how many changes it brought."""
        found = len(self.poller.found)
        before = len(self.changes)
        try:
            self.poller.poll(crash=crash)
        finally:
            new = self.poller.found[found:]
            contents = self.poller.committed[len(self.poller.committed) - len(new) :]
            for fetched, content in zip(new, contents, strict=True):
                if content is not None:
                    self._take(content, whole=fetched.whole)
        return len(self.changes) - before

    def _take(self, content: bytes, *, whole: bool) -> None:
        rows = pq.read_table(io.BytesIO(content)).to_pylist()
        if whole:
            self.wholes += 1
            self.state = {each[self.key]: each for each in rows}
            assert len(self.state) == len(rows)
            return
        waiting: dict[str, Any] | None = None
        for row in rows:
            operation = row.pop("op")
            self.changes.append((operation, row))
            key = row[self.key]
            if operation in (1, 2):
                assert self.state.pop(key) == row
            else:
                assert key not in self.state
                self.state[key] = row
            if operation == 3:
                assert waiting is not None
                assert waiting[self.key] == key
            else:
                assert waiting is None
            waiting = row if operation == 2 else None
        assert waiting is None
