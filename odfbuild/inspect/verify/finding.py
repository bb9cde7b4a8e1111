"""Findings of verification: what is wrong, where, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.odf.multihash import Multihash

if TYPE_CHECKING:
    from odfbuild.records.first_difference import ValueDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with a dataset.

    `message` is a sentence, `help` how to fix it, `code` stable. `block` and `sequence_number`
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


def fault(
    cache: Path,
    dataset: str,
    error: Exception,
    block: Multihash | None = None,
    sequence_number: int | None = None,
) -> Finding:
    """A finding that stands for an exception, so that it does not end the verification of others.

    What no rule of ours foresees is logged in the folder `cache`.
    """
    from odfbuild.ingest.unexpected_errors import unforeseen

    wrong = error
    if not isinstance(wrong, OdfbuildError):
        wrong = unforeseen(error, cache, f"verifying '{dataset}'", dataset)
    return Finding(
        dataset=dataset,
        code=wrong.code,
        message="; ".join((wrong.message, *wrong.notes)),
        help=wrong.help or "",
        block=block,
        sequence_number=sequence_number,
    )
