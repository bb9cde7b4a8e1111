"""Hand lists over to the JVM some at once.

py4j adds each member of a list by a request of its own, which was a seventh of all requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_AT_ONCE = 10
"""So many values Java makes a list of without an array."""


def hand_lists_over(jvm: Any) -> None:
    """Let py4j make lists of the JVM out of those that are given to it."""
    client = jvm._gateway_client
    client.converters = [_Lists(jvm), *client.converters]


class _Lists:
    """A converter of py4j, see its `ListConverter`."""

    def __init__(self, jvm: Any) -> None:
        self._list_of = jvm.java.util.List.of
        self._lists = jvm.java.util.ArrayList

    def can_convert(self, given: object) -> bool:
        """Whether `given` is a list that Java can make of its members."""
        return isinstance(given, list | tuple) and all(each is not None for each in given)

    def convert(self, given: list[Any] | tuple[Any, ...], client: object) -> JavaObject:
        """`given` as a list of the JVM."""
        if 1 < len(given) <= _AT_ONCE:
            return self._list_of(*given)
        made = self._lists()
        for at in range(0, len(given), _AT_ONCE):
            some = given[at : at + _AT_ONCE]
            if len(some) == 1:  # of one array Java would make a list of what stands in it
                made.add(*some)
            else:
                made.addAll(self._list_of(*some))
        return made
