"""Fewer requests of py4j to the JVM: one by one they took most of the time of small steps.

Releases of objects were a third of all requests, members of lists a seventh. It also asks what a
name means each time that the name is written, and the JVM then looks for a class of that name in
all jars, often in vain: PySpark writes some dozen names for each step.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_TOGETHER = 200


def release_together(gateway: Any) -> None:
    """Let py4j release `_TOGETHER` objects in one request."""
    client = gateway._gateway_client
    kept = gateway.java_gateway_server.getGateway().getBindings().keySet()
    names = gateway.jvm.org.apache.spark.util.Utils.stringToSeq
    as_java = gateway.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    pass_on = client.garbage_collect_object
    waiting: list[str] = []

    def release(name: str, enqueue: bool = True) -> None:
        if enqueue:  # from whatever thread let go of it, to the one that asks the JVM
            pass_on(name)
            return
        waiting.append(name)
        if len(waiting) >= _TOGETHER:
            ids, waiting[:] = ",".join(waiting), ()
            with contextlib.suppress(Exception):  # a JVM that ended holds nothing
                kept.removeAll(as_java(names(ids)))

    client.garbage_collect_object = release


def keep_names(jvm: Any) -> None:
    """Keep what names mean in a view of the JVM, and in all that is found through it."""
    jvm.__class__ = _kept()[type(jvm)]


def _kept() -> dict[type, type]:
    """Classes of py4j that stand for names, each with one that keeps what it was told."""
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

    found: dict[type, type] = {}

    def keeping(kind: type) -> type:
        asked = kind.__getattr__  # type: ignore[attr-defined]

        def _look_up(self: Any, name: str) -> Any:
            meant = asked(self, name)
            kept = found.get(type(meant))
            if kept is not None:
                meant.__class__ = kept
            elif not isinstance(meant, JavaMember):  # a value may be another one the next time
                return meant
            vars(self)[name] = meant
            return meant

        return type(kind.__name__, (kind,), {"__getattr__": _look_up})

    for kind in (JVMView, JavaPackage, JavaClass):
        found[kind] = keeping(kind)
    return found


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
