"""How closely the steps of derivatives follow the blocks of their inputs.

Whether a record counts in a window follows from the watermark that its input had just before the
block with the record. A step that makes one block of many of its inputs' would hide that records
came late, so windows further down would depend on how many blocks were there when it ran. Where
windows read a result, however far down, its steps therefore end where that matters. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.engine.event_windows import EventWindows, windows_of
from odfbuild.odf.chain.step import Closeness
from odfbuild.odf.model import TransformSql
from odfbuild.plan.columns.event_time import comes_in_time, groups_event_time, keeps_event_time
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import WINDOWS, Mode
from odfbuild.values import Value


class Derivative(Value):
    """A transformation, and what it reads: names in lower case, by their names in the query."""

    transform: TransformSql
    inputs: Mapping[str, str]
    own_names: bool = False
    """Whether columns of the system have names of their own."""


class Readers:
    """What the readers of `derivatives`, by name in lower case, ask of their steps."""

    def __init__(self, derivatives: Mapping[str, Derivative]) -> None:
        self._all = derivatives
        self._of: dict[str, list[str]] = {}
        for name, each in derivatives.items():
            for input in set(each.inputs.values()):
                self._of.setdefault(input, []).append(name)
        self._found: dict[str, tuple[Closeness, frozenset[EventWindows | None]]] = {}

    def closeness_of(self, name: str) -> Closeness:
        """How closely a derivative follows its inputs."""
        return self._own(name)[0] if name in self._all else Closeness.FREE

    def _own(self, name: str) -> tuple[Closeness, frozenset[EventWindows | None]]:
        """How closely it follows its inputs, and the windows that its event times come into."""
        if name in self._found:
            return self._found[name]
        self._found[name] = (Closeness.FREE, frozenset())  # of a circle, which is told elsewhere
        asked, windows = self._asked(self._of.get(name, ()))
        one = self._all[name]
        choice = expected_mode(one.transform)
        if choice.mode in (Mode.CHANGELOG, Mode.CHECKPOINT):
            asked = Closeness.FREE
        elif asked is not Closeness.FREE and choice == WINDOWS:
            if not one.own_names and comes_in_time(one.transform, windows):
                asked = Closeness.FREE if asked is Closeness.LATE else asked
            else:
                asked = Closeness.EVERY
        elif asked is not Closeness.FREE and not self._keeps(one):
            asked = Closeness.EVERY
        self._found[name] = (asked, windows)
        return self._found[name]

    def _asked(self, readers: Iterable[str]) -> tuple[Closeness, frozenset[EventWindows | None]]:
        """What readers ask of what they read."""
        asked = Closeness.FREE
        windows: frozenset[EventWindows | None] = frozenset()
        for reader in readers:
            own, further = self._own(reader)
            transform = self._all[reader].transform
            if expected_mode(transform) == WINDOWS:
                own, further = (
                    max(own, self._of_windows(reader)),
                    frozenset([windows_of(transform)]),
                )
            asked, windows = max(asked, own), windows | further
        return asked, windows

    def _of_windows(self, name: str) -> Closeness:
        one = self._all[name]
        by_time = not one.own_names and groups_event_time(one.transform, one.inputs)
        return Closeness.LATE if by_time else Closeness.EVERY

    def _keeps(self, one: Derivative) -> bool:
        return not one.own_names and keeps_event_time(one.transform, one.inputs)
