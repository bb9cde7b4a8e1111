"""Executors compute results: the local session, or a Spark Connect server.

A frame is always made and checked in the session beside odfbuild. An executor turns it into Parquet
parts in a folder; each request has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.counted import write_counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.engine.spark.internals.node import Node


THROWN_AWAY = {
    "compression": "lz4_raw",
    "parquet.block.size": str(16 << 20),
    "parquet.enable.dictionary": "false",
    "parquet.column.statistics.enabled": "false",
    "parquet.page.write-checksum.enabled": "false",
}
"""How files are written that are read once: all of that costs more than it saves."""
KEPT: Mapping[str, str] = {}
"""How files are written that are read again and again."""


class Executor(Protocol):
    """Computes the frames of one request.

    `stayed` are reasons why some of them were not computed where they should have been.
    """

    @property
    def stayed(self) -> Sequence[str]:
        """See above."""
        ...

    def write(self, frame: DataFrame, folder: Path, options: Mapping[str, str]) -> None:
        """Write a result to Parquet files in a new `folder`; in order of names they have its order.

        Names begin with `part-`.
        """
        ...


class LocalExecutor:
    """Computes in the session that made the frame, or on the cluster that it drives."""

    stayed: Sequence[str] = ()

    def write(self, frame: DataFrame, folder: Path, options: Mapping[str, str]) -> None:
        """See `Executor.write`."""
        if not few.collect(frame, folder):
            write_counted(frame, folder, str(folder), options)


_HERE = LocalExecutor()
_others: WeakKeyDictionary[SparkSession, Executor] = WeakKeyDictionary()


def use(spark: SparkSession, executor: Executor) -> None:
    """Let `executor` compute the frames of the session of a request."""
    _others[spark] = executor


def computes_here(spark: SparkSession) -> bool:
    """Whether frames of the session of a request are meant to be computed in it."""
    return spark not in _others


def in_one_part(spark: SparkSession, plan: Node) -> Node:
    """The plan of few records in one partition; of more, or if computed elsewhere, as it is."""
    here = computes_here(spark) and few.is_one_task(spark)
    return few.in_one_part(spark, plan) if here else plan


def why_here(spark: SparkSession) -> str:
    """Why frames of the session of a request were computed in it though a server was to do it."""
    return "; ".join(dict.fromkeys(_others.get(spark, _HERE).stayed))


def write_parts(
    frame: DataFrame, folder: Path, options: Mapping[str, str] = THROWN_AWAY
) -> tuple[Path, ...]:
    """Write a result as Parquet files; read one after the other they have its order."""
    _others.get(frame.sparkSession, _HERE).write(frame, folder, options)
    return tuple(sorted(folder.glob("part-*")))
