"""A cache of checked queries, by everything that the check depends on.

To look at one takes milliseconds, so it is done once: for a query that is new or changed, or whose
inputs have other columns. Errors are not cached, because their places may have moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)

from odfbuild.errors import OdfbuildError
from odfbuild.odf.model import Description
from odfbuild.project.model import Definition
from odfbuild.records.checks import Asked, Relationship
from odfbuild.sql.answers import Answers
from odfbuild.sql.translate.named import Engines

MOST_NEW = 500
"""New definitions whose queries a plan looks at. Where there are more, `validate` does: a first
plan of very many should take no longer than it takes to read them."""


def new_of(definitions: Collection[Definition], chains: Collection[str]) -> int:
    """How many definitions have no chain yet; `chains` are names in lower case."""
    least = len(definitions) - len(chains)
    return least if least > MOST_NEW else sum(each.folded not in chains for each in definitions)


class RightQueries(Answers):
    """Keys of queries that were found right; `accepted` are texts that an engine found right."""

    def __init__(
        self,
        load: Callable[[], Mapping[str, bytes] | None] = lambda: None,
        accepted: Container[str] = (),
    ) -> None:
        super().__init__(load)
        self.accepted = accepted

    def errors(
        self, key: str, look: Callable[[], tuple[OdfbuildError, ...]]
    ) -> tuple[OdfbuildError, ...]:
        """What `look` finds, unless what `key` stands for was found right before."""
        if self.get(key) is not None:
            return ()
        errors = look()
        if not errors:
            self.put(key, b"right")
        return errors


class QueryKeys:
    """Digests of all that a verdict on a definition follows from, its inputs' included.

    `heads` are those of all chains by alias in lower case, `alias_of` names what a reference stands
    for. Whoever looks at other parts of a definition, or at other columns of its inputs, has other
    digests: nobody trusts a verdict on less than what is asked. Of `wrong` datasets, in lower case,
    no columns are known.
    """

    def __init__(
        self,
        definitions: Iterable[Definition],
        heads: Mapping[str, bytes],
        engines: Engines,
        alias_of: Callable[[str], str],
        wrong: Collection[str] = (),
    ) -> None:
        self._definitions = {each.folded: each for each in definitions}
        self._heads = heads
        self._engines = repr(sorted(engines.items())).encode()
        self._alias_of = alias_of
        self._wrong = wrong
        self._found: dict[str, str] = {}

    def of_definition(self, folded: str) -> str:
        """For all of a definition, over the columns that its inputs are defined with."""
        return _digest("definition", self._of(folded))

    def of_change(self, folded: str, coming: Sequence[object]) -> str:
        """For what a plan changes of a dataset; `coming` are new columns of its inputs."""
        return _digest("change", repr(coming), self._of(folded))

    def of_checks(self, folded: str, asked: Sequence[Asked], *, complete: bool) -> str:
        """For the checks of a dataset; `complete`: what is not defined is known."""
        others = [each.check.to for each in asked if isinstance(each.check, Relationship)]
        parts = map(self._of, (folded, *map(str.lower, others)))
        return _digest("checks", repr((complete, asked)), *parts)

    def _of(self, folded: str) -> str:
        """Of one dataset and all upstream of it; a circle among inputs was refused before."""
        if folded not in self._found:
            text = b"\0".join(self._parts(folded))
            self._found[folded] = hashlib.sha256(text).hexdigest()
        return self._found[folded]

    def _parts(self, folded: str) -> Iterator[bytes]:
        head = self._heads.get(folded, b"")
        yield self._engines
        yield head
        if folded in self._wrong:
            yield b"wrong"
        definition = self._definitions.get(folded)
        if definition is not None:
            # The key of a file that was written just now is not known yet.
            yield (head and definition.key) or _shape(definition)
            for each in definition.inputs:
                yield self._of(self._alias_of(each).lower()).encode()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _shape(definition: Definition) -> bytes:
    """What a definition says of columns."""
    events = [each for each in definition.snapshot.metadata if not isinstance(each, Description)]
    return repr(events).encode()
