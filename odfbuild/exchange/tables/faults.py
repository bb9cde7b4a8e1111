"""Errors about tables that several formats have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, TableError
from odfbuild.store.remote import CREDENTIALS, EXTRAS, is_failure, scheme_of, why

if TYPE_CHECKING:
    from odfbuild.project.tables import Table

NOT_THERE = "it is not there any more"
"""How a table that was published differs from one whose files somebody removed."""


def changed_by_others(table: Table, how: str) -> TableError:
    """A table that somebody else changed is not overwritten."""
    return TableError(
        f"the table '{table.name}' was not published: {how}",
        code="E1307",
        dataset=table.dataset,
        notes=(f"table: {table.address}",),
        help=f"look at it, then run `odfbuild apply --allow rewrite:{table.name}`, which writes "
        "all of it anew; or give another `location` or `name`",
    )


def moved(table: Table) -> TableError:
    """Two writers at once: the other one was first."""
    return TableError(
        f"somebody else published the table '{table.name}' at the same time, and was first",
        code="E1308",
        dataset=table.dataset,
        notes=(f"table: {table.address}", "nothing of this attempt is in the table"),
        help="run `odfbuild apply` again",
        exit_code=5,
    )


def damaged(table: Table, how: str) -> TableError:
    """A table whose metadata or files are not what was written."""
    return TableError(
        f"the table '{table.name}' is damaged: {how}",
        code="E1309",
        dataset=table.dataset,
        notes=(f"table: {table.address}",),
        help=f"run `odfbuild table rebuild {table.name}`, which writes all of it anew",
        exit_code=3,
    )


def differs(table: Table, how: str) -> TableError:
    """A table that does not hold what its dataset has at the block that it names."""
    return TableError(
        f"the table '{table.name}' is not what odfbuild published: {how}",
        code="E1313",
        dataset=table.dataset,
        notes=(f"table: {table.address}",),
        help=f"run `odfbuild table rebuild {table.name}`, which writes all of it anew",
        exit_code=3,
    )


@contextmanager
def reaching(table: Table) -> Iterator[None]:
    """Faults of the place where a table lies become `TableError` E1310."""
    try:
        yield
    except OdfbuildError:
        raise
    except Exception as error:
        if not is_failure(error):
            raise
        remote = scheme_of(table.location) in EXTRAS
        raise TableError(
            f"the table '{table.name}' cannot be reached: {why(error)}",
            code="E1310",
            dataset=table.dataset,
            notes=(f"table: {table.address}",),
            help=CREDENTIALS
            if remote
            else "check `location` of `tables` in odfbuild.yaml, and that you may write there",
        ) from None
