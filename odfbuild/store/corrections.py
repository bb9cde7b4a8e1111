"""What corrections of a dataset change, kept beside its chain, so that readers need not look.

Of slices with corrections it says which columns these change: those of merges and of steps in mode
`changelog`, which correct records that are there. A correction of anything else may add a record,
whatever its columns say. Like other side-cars it saves time only: a slice that is not told of may
change everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.values import Value

KEPT = 64
"""So many slices are remembered: readers have seen older ones, nearly always."""
_STAMP = b"corrections 1\n"


class Corrected(Value):
    """The columns that the corrections of a slice change; with `alone` it holds nothing else."""

    columns: tuple[str, ...]
    alone: bool


class Corrections(Value):
    """What is known of a dataset up to the block `covered`: its corrected `slices`, by data file.

    With `in_full`, the records up to there are what the query in force gives for all records of its
    inputs, so a step whose inputs bring nothing of use changes nothing.
    """

    covered: Multihash
    in_full: bool = False
    slices: Mapping[str, Corrected] = field(default_factory=dict)


def kept_corrections(side_cars: Path | None) -> Corrections | None:
    """What is kept among the side-cars of a dataset."""
    if side_cars is None:
        return None
    found: Corrections | None = read_disposable(_file(side_cars), _STAMP, Corrections)
    return found


def changes_of(
    kept: Corrections | None, files: Sequence[str], vocab: Vocabulary
) -> frozenset[str] | None:
    """Columns that differ where all that data files bring are corrections: none without files.

    `None` where they bring more, or nobody knows. What odfbuild adds to a record always differs.
    """
    found = [kept.slices.get(each) if kept is not None else None for each in files]
    system = (vocab.offset, vocab.operation_type, vocab.system_time) if found else ()
    changed = set(system)
    for each in found:
        if each is None or not each.alone:
            return None
        changed.update(each.columns)
    return frozenset(changed)


def keep_corrections(
    side_cars: Path,
    covered: Multihash,
    slices: Mapping[str, Corrected],
    *,
    in_full: bool = False,
) -> None:
    """Keep it for readers; for the holder of the claim. `slices` come behind those of before."""
    before = kept_corrections(side_cars)
    known = {**(before.slices if before else {}), **slices}
    latest = dict(list(known.items())[-KEPT:])
    write_disposable(_file(side_cars), _STAMP, Corrections(covered, in_full, latest))


def _file(side_cars: Path) -> Path:
    return side_cars / "corrections.bin"
