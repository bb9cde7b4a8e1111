"""Compute checked queries on a Spark Connect server.

A server takes SQL and analyses it itself, so a result is computed there only if that analysis gives
the plan that was checked here, word for word, over the same files. Otherwise the result is computed
locally, with a reason. Source: Spark Connect, `spark/connect/base.proto`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from odfbuild.engine import shutdown as elsewhere
from odfbuild.engine.contract import StepProgress
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.connect.cluster import check_reachable
from odfbuild.engine.spark.connect.expression_text import NotExpressible
from odfbuild.engine.spark.connect.lost import SessionLost, refused_by
from odfbuild.engine.spark.connect.plan_text import (
    OF_TASKS,
    PREFIX,
    PlanText,
    Relation,
    check_text,
    text_of_plan,
)
from odfbuild.engine.spark.connect.server import check_sees, connected
from odfbuild.engine.spark.connect.workers import Workers
from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.internals.connect import analysis, hang_up
from odfbuild.engine.spark.internals.node import Files, Node
from odfbuild.engine.spark.internals.records import empty_frame
from odfbuild.engine.spark.results.counted import write_counted
from odfbuild.engine.spark.results.executor import LocalExecutor
from odfbuild.engine.spark.results.frames import quote
from odfbuild.errors import EngineProblem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Done = TypeVar("_Done")
_WHOLE = "spark.sql.debug.maxToStringFields"
_numbers = itertools.count()


class Remote:
    """The server at `settings.master`, with `planner` as the session beside odfbuild.

    `shared` is a folder in which both must find what the other one writes, for all work but that of
    tasks which read and write in a storage.
    """

    def __init__(self, settings: EngineSettings, planner: SparkSession, shared: Path) -> None:
        self._settings = settings
        self._shared = shared
        self._planner = planner
        self._connecting = threading.Lock()
        self._session: Any = None
        self._sharing: Any = None
        """The session that was found to share the folder."""
        self._workers: Workers | None = None
        self._dataset = threading.local()
        self._step_progress: dict[str, StepProgress] = {}
        self._open()

    def executor(self, dataset: str) -> ConnectExecutor:
        """Who computes for `dataset`."""
        return ConnectExecutor(self, dataset)

    def check_workers(self, files: Iterable[Path]) -> None:
        """Raise `EngineProblem` E0548 unless workers of the server see `files` as we do."""
        self._dataset.name = None  # what is asked here is no progress of a step
        known = tuple(files)
        session = self._live()
        try:
            self._ask(known)
        except SessionLost as lost:
            self._forget(session)
            try:
                self._live()
            except EngineProblem:
                raise lost from None
            self._ask(known)

    def _ask(self, files: Iterable[Path]) -> None:
        if self._workers is not None:
            self._workers.check_files(files)

    def progress(self, dataset: str) -> StepProgress | None:
        """What the server said last of its work for `dataset`."""
        return self._step_progress.get(dataset)

    def cancel(self, dataset: str) -> None:
        """End what the server does for `dataset`."""
        if self._session is not None:
            self._session.interruptTag(_tag(dataset))

    def stop(self) -> None:
        """End what the server does, and the session there."""
        elsewhere.ended(self._interrupt)
        session, self._session = self._session, None
        if session is not None:
            # A server that is gone has nothing to end.
            with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
                session.interruptAll()
                session.stop()

    def _interrupt(self) -> None:
        session = self._session
        if session is not None:
            session.interruptAll()

    def write(
        self,
        dataset: str,
        text: PlanText,
        here: DataFrame,
        folder: Path,
        options: Mapping[str, str],
    ) -> None:
        """Compute a text there that reads as `here` does; raises `NotExpressible` if it does not.

        A session that is lost may still write, so each writes to a folder of its own.
        """
        names = iter(("there", "again"))

        def work(session: Any) -> Path:
            made = folder.with_name(f"{folder.name}-{next(names)}")
            with _views(session, text.relations):
                result = session.sql(text.sql)
                if analysis(result) != analysis(here):
                    raise NotExpressible(_OTHERWISE)
                if not set(map(_path, result.inputFiles())) <= _paths(text.relations):
                    raise NotExpressible("the server would read other files")
                write_counted(result, made, made.as_uri(), options)
            return made

        self._twice(dataset, work, self._live).rename(folder)

    def carry_out(self, dataset: str, work: Callable[[Any], _Done]) -> _Done:
        """Have work done in the session of the server that needs no folder, but a storage."""
        return self._twice(dataset, work, self._open)

    def _twice(
        self, dataset: str, work: Callable[[Any], _Done], session: Callable[[], Any]
    ) -> _Done:
        """Do work in a session; in another one where it is lost meanwhile, once."""
        try:
            return self._once(session(), dataset, work)
        except SessionLost as lost:
            try:
                another = session()
            except EngineProblem:
                raise lost from None
            return self._once(another, dataset, work)

    def _once(self, session: Any, dataset: str, work: Callable[[Any], _Done]) -> _Done:
        self._dataset.name = dataset
        session.addTag(_tag(dataset))
        try:
            return work(session)
        except Exception as error:
            lost = refused_by(error, self._settings.address, dataset)
            if lost is None:
                raise
            self._forget(session)
            raise lost from None
        finally:
            session.removeTag(_tag(dataset))

    def _live(self) -> Any:
        """The session, which shares the folder."""
        session = self._open()
        with self._connecting:
            if self._sharing is not session:
                check_sees(session, self._shared, self._settings.address)
                self._sharing = session
        return session

    def _open(self) -> Any:
        with self._connecting:
            if self._session is None:
                check_reachable(self._settings.master)
                session = connected(self._settings, self._planner)
                session.conf.set(_WHOLE, _MANY)
                session.registerProgressHandler(self._advanced)
                self._session = session
                self._workers = Workers(session, self._settings.address)
                elsewhere.began(self._interrupt)
            return self._session

    def _forget(self, session: Any) -> None:
        """Let the next piece of work look for a server again."""
        elsewhere.ended(self._interrupt)
        if self._session is session:
            self._session = None
        with contextlib.suppress(Exception):
            hang_up(session)

    def _advanced(self, *, stages: Any, **_: Any) -> None:
        name = getattr(self._dataset, "name", None)
        found = list(stages or ())
        if name is None or not found:
            return
        self._step_progress[name] = StepProgress(
            stages_done=sum(bool(each.done) for each in found),
            stages=len(found),
            tasks_done=sum(each.num_completed_tasks for each in found),
            tasks=sum(each.num_tasks for each in found),
        )


_MANY = "100000"
_OTHERWISE = "the server reads its text as another plan"


class ConnectExecutor:
    """Has the server compute the frames of a request for `dataset`, where it can."""

    def __init__(self, remote: Remote, dataset: str) -> None:
        self._remote = remote
        self._dataset = dataset
        self.stayed: list[str] = []
        """Why something was computed here."""

    def write(self, frame: DataFrame, folder: Path, options: Mapping[str, str]) -> None:
        """See `executor.Executor.write`."""
        try:
            text, here = self._told(frame, folder)
            self._remote.write(self._dataset, text, here, folder, options)
        except NotExpressible as why:
            self.stayed.append(str(why))
            LocalExecutor().write(frame, folder, options)

    def _told(self, frame: DataFrame, folder: Path) -> tuple[PlanText, DataFrame]:
        """The text of a frame, and what it means here."""
        spark = frame.sparkSession
        catalyst = Catalyst(spark)
        files = itertools.count()

        def readable(leaf: Node) -> Node:
            if leaf.files is not None:
                return leaf
            aside = folder.parent / f"{folder.name}-{next(files)}.parquet"
            pq.write_table(catalyst.frame(leaf).toArrow(), aside)
            schema = catalyst.frame(leaf).schema
            return plan_of(spark.read.schema(schema).parquet(str(aside)))

        return _read_again(frame, readable)


def _read_again(frame: DataFrame, readable: Callable[[Node], Node]) -> tuple[PlanText, DataFrame]:
    """The text of a frame, in which leaves are as `readable` gives them, and what it means here."""
    from pyspark.errors import AnalysisException

    spark = frame.sparkSession
    spark.conf.set(_WHOLE, _MANY)
    catalyst = Catalyst(spark)
    text = text_of_plan(catalyst, plan_of(frame), f"{PREFIX}{next(_numbers)}_", readable)
    for relation in text.relations:
        _make_view(catalyst.frame(relation.leaf), relation)
    try:
        here = spark.sql(text.sql)
    except AnalysisException as error:
        raise NotExpressible(f"Spark does not read its text: {error.getCondition()}") from None
    check_text(catalyst, text, here)
    return text, here


@contextlib.contextmanager
def over_tasks(session: Any, result: DataFrame, here: DataFrame, there: Any) -> Iterator[Any]:
    """`result`, a lazy frame over the one `here`, in the session of a server.

    `here` is what tasks give, and `there` is the same in that session. Raises `NotExpressible`
    unless the server reads the text of `result` as it is meant.
    """

    def readable(leaf: Node) -> Node:
        if leaf.kind != OF_TASKS:
            raise NotExpressible("records that stand in it")
        return plan_of(empty_frame(here.sparkSession, here.schema))

    text, _ = _read_again(result, readable)
    # Types that a client sends are texts with a collation, which plans name.
    columns = [
        f"CAST({quote(name)} AS STRING) AS {quote(name)}" if kind == "string" else quote(name)
        for name, kind in here.dtypes
    ]
    try:
        for relation in text.relations:
            _make_view(here.selectExpr(*columns), relation)
            _make_view(there.selectExpr(*columns), relation)
        found = session.sql(text.sql)
        if analysis(found) != analysis(here.sparkSession.sql(text.sql)):
            raise NotExpressible(_OTHERWISE)
        yield found
    finally:
        with contextlib.suppress(Exception):  # those of a session that is lost went with it
            _drop(session, text.relations)


@contextlib.contextmanager
def _views(session: Any, relations: tuple[Relation, ...]) -> Iterator[None]:
    """While there are views of `relations`; those of work that failed go with the session."""
    for each in relations:
        _make_view(_read(session, _files(each)), each)
    try:
        yield
    except NotExpressible:
        _drop(session, relations)
        raise
    _drop(session, relations)


def _drop(session: Any, relations: tuple[Relation, ...]) -> None:
    for each in relations:
        session.catalog.dropTempView(each.view)


def _make_view(frame: Any, relation: Relation) -> None:
    names = [each.name for each in relation.leaf.output]
    columns = zip(names, relation.columns, strict=True)
    shown = [f"{quote(name)} AS {column}" for name, column in columns]
    frame.selectExpr(*shown).createOrReplaceTempView(relation.view)


def _files(relation: Relation) -> Files:
    found = relation.leaf.files
    if found is None:
        raise AssertionError("a relation without files was written to one")
    return found


def _read(session: Any, relation: Files) -> Any:
    """The relation in the session of a server."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(relation.schema))
    # Spark adds the paths itself.
    options = {k: v for k, v in relation.options.items() if k not in ("path", "paths")}
    reader = session.read.format(relation.format).options(**options).schema(schema)
    return reader.load(list(relation.roots))


def _paths(relations: Iterable[Relation]) -> set[Path]:
    return {_path(uri) for each in relations for uri in _files(each).files}


def _path(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path)).resolve()


def _tag(dataset: str) -> str:
    """Tags hold no commas."""
    return "odfbuild:" + dataset.replace(",", ";")
