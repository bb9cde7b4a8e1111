"""A wrong input for each code of an error."""

from tests.cli.wrong.chains import BROKEN, BYTES, FOREIGN_TWICE, STORES
from tests.cli.wrong.engine_info import FETCHES, MACHINES
from tests.cli.wrong.projects import FILES, GRAPH, MORE_SOURCES, PLANS, SOURCES
from tests.cli.wrong.spoil import Case, Flaw

_ALL: tuple[Case | Flaw, ...] = (
    *(*FILES, *GRAPH, *PLANS, *SOURCES, *MORE_SOURCES),
    *(*BROKEN, *FOREIGN_TWICE, *BYTES, *STORES, *FETCHES, *MACHINES),
)

CASES = tuple(each for each in _ALL if isinstance(each, Case))
FLAWS = tuple(each for each in _ALL if isinstance(each, Flaw))
