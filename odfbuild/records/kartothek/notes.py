"""What odfbuild notes in the metadata of a dataset that it publishes, below `metadata`.

kartothek keeps these notes when it updates a dataset. So they have digests of the state that they
were made for: where these differ, somebody else has changed the dataset since.

In a dataset of several tables each partition belongs to one table, and its label says to which; the
other tables have an empty file in it, because kartothek wants all tables in each partition.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from odfbuild.records.kartothek.metadata import Files, Metadata
from odfbuild.values import Value

KEY = "odfbuild"
_OWNER = "+odfbuild-"
"""Between the name of a table and what is unique, in the last part of a label."""


def base(table: str, unique: str) -> str:
    """The last part of the label of a partition that belongs to `table`."""
    return f"{table}{_OWNER}{unique}"


def owner(label: str) -> str | None:
    """The table that a partition belongs to; `None`: odfbuild did not write it."""
    table, separator, _ = label.rpartition("/")[2].rpartition(_OWNER)
    return table if separator else None


def part(partitions: Mapping[str, Files], table: str) -> dict[str, str]:
    """Labels and files of the partitions that belong to `table`, or to nobody known."""
    return {
        label: files[table]
        for label, files in partitions.items()
        if table in files and (len(files) == 1 or owner(label) in (table, None))
    }


class TableNote(Value):
    """A published table: its pin, the bytes of its schema, its indices, a digest of its part."""

    pin: str
    schema: bytes
    indices: tuple[str, ...]
    part: str


class Notes(Value):
    """Notes by table. `committed` is when odfbuild made the state; `None`: it did not."""

    tables: Mapping[str, TableNote] = field(default_factory=dict)
    committed: dt.datetime | None = None

    @classmethod
    def of(cls, metadata: Metadata) -> Notes:
        """The notes of a dataset; none where odfbuild never wrote it, or they are damaged."""
        found: Any = metadata.user.get(KEY)
        try:
            tables = {
                name: TableNote(
                    str(note["pin"]),
                    base64.b64decode(note["schema"]),
                    tuple(map(str, note["indices"])),
                    str(note["part"]),
                )
                for name, note in found["tables"].items()
            }
            is_ours = found["state"] == metadata.state()
            return cls(tables, dt.datetime.fromisoformat(found["committed"]) if is_ours else None)
        except (AttributeError, KeyError, TypeError, ValueError):
            return cls()

    @property
    def is_ours(self) -> bool:
        """Whether the state is as odfbuild committed it."""
        return self.committed is not None

    def schema(self, table: str) -> bytes | None:
        """The schema of a table in this very state.

        `_common_metadata` is one file for all states: a state that is about to be committed may
        have replaced it.
        """
        note = self.tables.get(table)
        return note.schema if note is not None and self.is_ours else None


def noted(metadata: Metadata, notes: Notes) -> Metadata:
    """The metadata of a state that odfbuild commits, with these notes and those of others."""
    assert notes.committed is not None
    content = {
        "state": metadata.state(),
        "committed": notes.committed.isoformat(),
        "tables": {
            name: {
                "pin": note.pin,
                "schema": base64.b64encode(note.schema).decode(),
                "indices": list(note.indices),
                "part": note.part,
            }
            for name, note in notes.tables.items()
        },
    }
    return replace(metadata, user={**metadata.user, KEY: content})
