"""How many new records downstream datasets can expect from an input."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.plan.model import Reason
from odfbuild.values import Value


class Amount(Value):
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


class Share(Value):
    """New records are those new ones of `source` whose `column` has one of `values`.

    Of the source there are at most `records` new ones.
    """

    source: str
    column: str
    values: tuple[str, ...]
    records: int


class ExpectedInput(Value):
    """A dataset that will run (`certain`) or that will run if a source has news.

    `records` is how many new records are to be expected, `None` when that cannot be told; unless
    `exact` it is an upper bound. `causes` say why it runs, each down to a root cause. `share` is
    what is known of where they come from.
    """

    certain: bool
    records: int | None
    exact: bool
    causes: tuple[Reason, ...]
    share: Share | None = None

    @property
    def amount(self) -> Amount:
        """How many new records there will be."""
        known = self.exact and self.certain and self.records is not None
        return Amount(self.records or 0 if known else 0, self.records)


def together(outlooks: list[ExpectedInput]) -> Amount:
    """How many new records several datasets bring.

    Those that keep different values of one column share the records of their source.
    """
    shares: dict[tuple[str, str], list[Share]] = {}
    found = Amount()
    for each in outlooks:
        if each.share is None:
            found += each.amount
        else:
            shares.setdefault((each.share.source, each.share.column), []).append(each.share)
    for group in shares.values():
        values = [value for share in group for value in share.values]
        join = max if len(set(values)) == len(values) else sum
        found += Amount(0, join(share.records for share in group))
    return found


def total(amounts: Sequence[Amount]) -> Amount:
    """All together."""
    known = [each.most for each in amounts if each.most is not None]
    most = sum(known) if len(known) == len(amounts) else None
    return Amount(sum([each.least for each in amounts]), most)
