"""Let py4j ask the JVM once what a name means: a package, a class or a static method.

It asks each time that a name is written, and the JVM then looks for a class of that name in all
jars, often in vain: PySpark writes some dozen names for each step.
"""

from __future__ import annotations

from typing import Any


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
