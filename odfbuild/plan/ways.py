"""The ways in which a step in mode `changelog` is computed, as plans say them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from odfbuild.errors import Location
from odfbuild.plan.refusal import place_from_data, place_to_data
from odfbuild.sql.increments.parts import Place
from odfbuild.values import Value


class Way(Enum):
    """Which records a step is computed over; the value is what JSON says."""

    NONE = "nothing"
    ADDED = "new_records"
    TOTALS = "totals"
    KEYS = "affected_keys"
    KEPT = "kept_totals"
    AT_RUN = "decided_at_run_time"
    NEW = "all_mostly_new"
    ALL = "all_records"


class Computation(Value, kw_only=True):
    """The way of a step, and how many records the inputs have in the end (`None`: unknown).

    For `KEYS` and `KEPT`, each of the `keys` is what is equal for the records of a key. For `NONE`,
    `why` the result stays as it is; for others, `why` all records are read, the `place` in the
    query that makes it so (`at` there), and what `help`s.
    Policies let the run read `most_records`, and never all where few are new (`never_in_full`).
    """

    way: Way
    total: int | None = None
    keys: tuple[str, ...] = ()
    why: str = ""
    help: str = ""
    at: Place | None = None
    place: Location | None = None
    most_records: int | None = None
    never_in_full: bool = False

    def to_data(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "way": self.way.value,
            "total": self.total,
            "keys": list(self.keys),
            "why": self.why or None,
            "help": self.help or None,
            "source": place_to_data(self.place),
            "most_records": self.most_records,
            "never_in_full": self.never_in_full,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any] | None) -> Computation | None:
        """From what `to_data` gives."""
        if data is None:
            return None
        return cls(
            way=Way(data["way"]),
            total=data["total"],
            keys=tuple(data["keys"]),
            why=data["why"] or "",
            help=data["help"] or "",
            place=place_from_data(data["source"]),
            most_records=data["most_records"],
            never_in_full=data["never_in_full"],
        )

    @property
    def may_read_all(self) -> bool:
        """Whether more than affected records of a long history are read, or may be."""
        return self.way in (Way.AT_RUN, Way.ALL)

    @property
    def reads_all(self) -> bool:
        """Whether all records of the inputs are read."""
        return self.way in (Way.NEW, Way.ALL)
