"""What Spark is doing, and what it says went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a stage is."""

    tasks: int
    done: int
    records_read: int


def executors(context: SparkContext) -> int:
    """How many JVMs take work; the driver counts as one."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos())


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


def message(error: Exception) -> str:
    """The same on one line, without the text of the query."""
    return " ".join(said(error).split("== SQL")[0].split())
