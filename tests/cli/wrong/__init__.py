"""A wrong input for each code of an error."""

from tests.cli.wrong.chains import BROKEN, BYTES, FOREIGN_TWICE, STORES
from tests.cli.wrong.projects import CHECKS, FILES, GRAPH, MORE_SOURCES, PLANS, SOURCES

MARK = "\x1d"
"""Stands before the code of a case, before what it says, and before its exit code."""

CASES = (
    *(*FILES, *GRAPH, *PLANS, *SOURCES, *MORE_SOURCES, *CHECKS),
    *(*BROKEN, *FOREIGN_TWICE, *BYTES, *STORES),
)
