"""What Spark is doing, and what it says went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext


def release() -> str:
    """The release of Spark of this process, which may be a worker's."""
    import pyspark

    return str(pyspark.__version__)


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a stage is."""

    tasks: int
    done: int
    records_read: int


def executors(context: SparkContext) -> int:
    """How many JVMs take work; the driver counts as one."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos())


def setting_seconds(context: SparkContext, name: str, default: float) -> float:
    """A setting of Spark that is a time."""
    conf = context._jsc.sc().conf()
    return float(conf.getTimeAsMs(name, f"{default * 1000:.0f}ms")) / 1000


def executor_addresses(context: SparkContext) -> frozenset[str]:
    """Where the JVMs are that take work, the driver among them."""
    found = context._jsc.sc().statusTracker().getExecutorInfos()
    return frozenset(f"{each.host()}:{each.port()}" for each in found)


def stages(context: SparkContext, numbers: Iterable[int]) -> list[Stage]:
    """The stages of these numbers."""
    store = context._jsc.sc().statusStore()
    found = map(store.lastStageAttempt, numbers)
    return [
        Stage(int(each.numTasks()), int(each.numCompleteTasks()), int(each.inputRecords()))
        for each in found
    ]


def said(error: Exception) -> str:
    """What Spark says of an error, without the stack of the JVM."""
    thrown = getattr(error, "java_exception", None)  # of py4j, which PySpark did not translate
    text = str(error) if thrown is None else str(thrown.getMessage())
    return text.split("JVM stacktrace")[0].strip()


@dataclass(frozen=True, slots=True)
class Fault:
    """What an expression of a query could not do.

    `condition` is Spark's name for it, if it has one, `text` its words and `reason` those of the
    library behind it, if any.
    """

    condition: str | None
    text: str
    reason: str | None = None


CANCELLED = "SPARK_JOB_CANCELLED"
"""Spark's name for the end of a job that somebody stopped."""

_OF_VALUES = re.compile(
    r"java\.(lang\.(Arithmetic|IllegalArgument|NumberFormat|NegativeArraySize|UnsupportedOperation"
    r"|\w*IndexOutOfBounds)|time\.|util\.regex\.|util\.\w*Format|nio\.charset\.|net\.|security\."
    r"|math\.)|javax\.crypto\.|com\.fasterxml\.|com\.univocity\.|javax\.xml\.|org\.xml\."
)
_EXPRESSIONS = re.compile(
    r"org\.apache\.spark\.sql\.catalyst\.(expressions|util|json|csv|xml)\.|GeneratedClass"
)
_DEEPEST = 20


def fault_of(error: Exception) -> Fault | None:
    """What made an expression fail, whichever way Spark told it; `None` for anything else.

    Spark does not translate all exceptions of Java, and not all have a name: those of libraries
    count where an expression was at work.
    """
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException) and error.getCondition():
        return Fault(error.getCondition(), message(error), _reason(_thrown(error)))
    chain = _thrown(error)
    for thrown in chain:
        condition = _condition(thrown)
        if condition and not condition.startswith("INTERNAL_ERROR"):
            return Fault(condition, " ".join(str(thrown.getMessage()).split()), _reason(chain))
    for thrown in chain:
        if _OF_VALUES.match(thrown.getClass().getName()) and any(
            _EXPRESSIONS.search(each.getClassName()) for each in thrown.getStackTrace()
        ):
            return Fault(None, _words(thrown), _reason(chain))
    if not chain and isinstance(error, _named_like_values()):
        return Fault(None, message(error))  # of Spark Connect, which has no more of it
    return None


def _thrown(error: Exception) -> list[Any]:
    """The exception of Java behind an error, and what caused it."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[Any] = []
    while thrown is not None and len(found) < _DEEPEST:
        found.append(thrown)
        thrown = thrown.getCause()
    return found


def _condition(thrown: Any) -> str | None:
    try:
        name = thrown.getCondition()
    except Exception:  # it has no such method, which only asking tells
        return None
    return str(name) if name else None


def _reason(chain: Sequence[Any]) -> str | None:
    return _words(chain[-1]) if len(chain) > 1 else None


def _words(thrown: Any) -> str:
    kind = str(thrown.getClass().getSimpleName())
    lines = str(thrown.getMessage() or "").splitlines()
    return f"{kind}: {lines[0]}" if lines else kind


def _named_like_values() -> tuple[type[Exception], ...]:
    from pyspark.errors import (
        ArithmeticException,
        ArrayIndexOutOfBoundsException,
        DateTimeException,
        IllegalArgumentException,
        NumberFormatException,
    )

    return (
        ArithmeticException,
        ArrayIndexOutOfBoundsException,
        DateTimeException,
        IllegalArgumentException,
        NumberFormatException,
    )


def message(error: Exception) -> str:
    """The same on one line, without the text of the query."""
    return " ".join(said(error).split("== SQL")[0].split())
