"""Which files of a dataset no state needs any more.

A file is kept while the present state names it, and for some time afterwards: a reader may have
opened the state before, and a writer may be about to commit. When a file lost its name is not
written anywhere, so it is noted when it is first found without one; the time of the last commit
tells it sooner.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from odfbuild.records.kartothek import names
from odfbuild.records.kartothek.dataset import Kartothek
from odfbuild.store.place import Place, PlacedFile

_NOTED = "garbage.json"
_LIMIT = 1 << 28


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Files to remove now, and since when (seconds, Unix) the others have had no name."""

    remove: tuple[PlacedFile, ...]
    noted: Mapping[str, float]


def unneeded(
    files: Iterable[PlacedFile],
    named: Iterable[str],
    noted: Mapping[str, float],
    committed: float | None,
    now: float,
    keep: float,
) -> Unneeded:
    """Decide. `committed` is when the present state was made, where that is known."""
    names_of_state = set(named)
    remove, waiting = [], {}
    for file in files:
        if file.name in names_of_state:
            continue
        since = noted.get(file.name, now)
        if committed is not None and file.written <= committed:
            since = min(since, committed)
        if now - max(since, file.written) >= keep:
            remove.append(file)
        else:
            waiting[file.name] = since
    return Unneeded(tuple(remove), waiting)


def candidates(place: Place, uuid: str, tables: Iterable[str]) -> list[PlacedFile]:
    """Data and index files below a dataset; files of other kinds are not ours to remove."""
    kinds = dict.fromkeys(tables, names.DATA_SUFFIX) | {names.INDICES: names.INDEX_SUFFIX}
    return [
        each
        for folder, suffix in kinds.items()
        for each in place.files(f"{uuid}/{folder}")
        if each.name.endswith(suffix)
    ]


def named_files(state: Kartothek) -> set[str]:
    """Data and index files that a state needs."""
    data = {file for files in state.partitions.values() for file in files.values()}
    return data | {each for each in state.metadata.indices.values() if isinstance(each, str)}


def read_notes(place: Place, uuid: str) -> Mapping[str, float]:
    """Since when files have been without a name, as `write_notes` left it."""
    try:
        found: Any = json.loads(place.read(f"{uuid}/{names.OWN}/{_NOTED}", _LIMIT) or "{}")
        return {str(name): float(since) for name, since in found.items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def write_notes(place: Place, uuid: str, noted: Mapping[str, float]) -> None:
    """Keep since when files have been without a name."""
    place.write(f"{uuid}/{names.OWN}/{_NOTED}", json.dumps(dict(noted)).encode())


def seconds(time: dt.datetime | None) -> float | None:
    """Seconds of Unix."""
    return None if time is None else time.timestamp()
