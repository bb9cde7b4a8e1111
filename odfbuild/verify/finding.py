"""What verification reports: a thing that is wrong, where it is, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from odfbuild.odf.multihash import Multihash


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A value that was recorded and another one that the same step gives; both as text."""

    column: str
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with a dataset.

    `message` is a sentence, `help` how to mend it, `code` stable. `block` and `sequence_number`
    name the block concerned, `path` the file, `offset` and `differences` the first record that
    differs and its values, where there is one.
    """

    dataset: str
    code: str
    message: str
    help: str
    block: Multihash | None = None
    sequence_number: int | None = None
    path: Path | None = None
    offset: int | None = None
    differences: tuple[ValueDifference, ...] = ()
