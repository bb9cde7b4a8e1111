"""Numbers of records that are not known before a run, as ranges."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of records from `least` to `most`; nobody can tell the most where it is `None`."""

    least: int = 0
    most: int | None = 0

    @property
    def exact(self) -> bool:
        """Whether it is known."""
        return self.least == self.most

    def __add__(self, other: Amount) -> Amount:
        """Both together."""
        unknown = self.most is None or other.most is None
        most = None if unknown else (self.most or 0) + (other.most or 0)
        return Amount(self.least + other.least, most)


def total(amounts: Sequence[Amount]) -> Amount:
    """All together."""
    known = [each.most for each in amounts if each.most is not None]
    most = sum(known) if len(known) == len(amounts) else None
    return Amount(sum([each.least for each in amounts]), most)
