"""Records of slices, found by keys in copies that are kept beside the chain.

Each segment names the slices whose records it holds, in the order of the chain. It is looked at
only where these are asked for, so it cannot show anything else, whatever became of the chain. What
is damaged, foreign or not there yet is read from the slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path

import pyarrow as pa

from odfbuild.fallbacks import falling_back
from odfbuild.records.key_hash import Hashes
from odfbuild.records.segments import Segment, Segments, records_in, schema_of
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import folder_lock
from odfbuild.store.side_cars import SideCar, SideCarFolder, by_key_folder

_FORM = b"records by key 1\n"
_LARGEST = 1.5
"""Times the bytes of slices that are kept of them for a key, beside a `_LITTLE` for few records."""
_LITTLE = 1 << 20


class RecordsByKey:
    """The records of `slices` by one or several keys: names of these, and places of records.

    What is found may hold records behind the slices where the caller `cuts` these off.
    """

    def __init__(
        self,
        side_cars: Path,
        keys: Mapping[str, Callable[[pa.Table], Hashes]],
        slices: Sequence[Path],
        *,
        cuts: bool,
    ) -> None:
        self._slices = slices
        self._cuts = cuts
        self._keys: dict[str, Segments] = {}
        for name, place in keys.items():
            folder = SideCarFolder(by_key_folder(side_cars, name), _FORM + name.encode())
            self._keys[name] = Segments(folder, place)
        self.held: frozenset[str] = frozenset()
        """Names of the slices whose records are found by each of the keys."""
        self._opened: dict[str, list[Segment]] = {}
        # They are open from now on, whoever replaces them.
        with falling_back(__name__, "records are looked for in slices", OSError, pa.ArrowException):
            files = {name: self._kept(segments) for name, segments in self._keys.items()}
            opened = {name: [*map(self._keys[name].open, files[name])] for name in files}
            held = {_names(each) for each in files.values()}
            if len(held) == 1:
                self.held, self._opened = held.pop(), opened

    def find(self, key: str, lowest: Hashes, highest: Hashes) -> Iterator[pa.Table]:
        """Records of the slices that are `held`; see `Segment.between`."""
        for segment in self._opened.get(key, ()):
            yield from segment.between(lowest, highest)

    def keep(self) -> None:
        """Hold all slices; whatever prevents that costs time, and nothing else."""
        with falling_back(__name__, "records are not kept by key", OSError, pa.ArrowException):
            for segments in self._keys.values():
                prepare_cache_folder(segments.folder.folder)
                with folder_lock(segments.folder.folder, wait=False):
                    self._catch_up(segments)

    def _kept(self, segments: Segments) -> list[SideCar]:
        kept = segments.folder.load()
        return [each for each in kept.files if self._is_asked_for(each)] if kept else []

    def _is_asked_for(self, file: SideCar) -> bool:
        """Whether a segment holds nothing but slices, or others only behind the last one."""
        names = [each.name for each in self._slices]
        later = set(file.notes[1]).difference(names)
        if not later or not self._cuts:
            return not later
        before = file.notes[1][: -len(later)]
        return bool(before) and before[-1] == names[-1] and later.isdisjoint(before)

    def _catch_up(self, segments: Segments) -> None:
        files = self._kept(segments)
        held = _names(files)
        missing = [each for each in self._slices if each.name not in held]
        for _, alike in groupby(missing, schema_of):
            run = list(alike)
            names = tuple(each.name for each in run)
            files = segments.grown(files, records_in(run), partial(_named, names), _joined)
        if missing:
            slices = sum(each.stat().st_size for each in self._slices)
            if sum(each.size for each in files) > _LARGEST * slices + _LITTLE:
                files = [*files[:-1], segments.packed(files[-1])]
            segments.folder.save(None, files)


def _names(files: Sequence[SideCar]) -> frozenset[str]:
    return frozenset(name for each in files for name in each.notes[1])


def _named(names: tuple[str, ...], _: pa.Table) -> tuple[str, ...]:
    return names


def _joined(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*names)))
