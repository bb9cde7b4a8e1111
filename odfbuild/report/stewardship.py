"""Statements about records that are no longer there, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odfbuild.odf.stewardship import Signed, Withdrawal
from odfbuild.wording import count


def statement_lines(name: str, statements: Iterable[Signed]) -> Iterator[str]:
    """A sentence for each statement about a dataset, the oldest first."""
    for each in statements:
        said = each.statement
        signed = f"statement of {said.time} by {said.by}"
        if isinstance(said, Withdrawal):
            what = f"withdrawn: {count(said.records, 'record')} up to block #{said.number}"
            yield f"'{name}': {what} ({signed}: {said.why})."
        else:
            people = count(len(said.subjects), "person")
            what = f"erased: values of {people} in {count(said.records, 'record')}"
            yield f"'{name}': {what} ({signed})."
