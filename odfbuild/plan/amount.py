"""Numbers of records that are not known before a run, as ranges."""

from __future__ import annotations

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


def total(amounts: list[Amount]) -> Amount:
    """All together."""
    return sum(amounts, Amount())
