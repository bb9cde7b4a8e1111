"""What inputs amount to, found once for all queries of a session that read them.

To read an input takes Spark as long as a small query: it plans each file apart. So the plan that
reads an input stays, known by the files that hold it, with files of its own where it takes records
back. None of it says anything about a chain, and all of it goes with the session.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.internals.catalyst import plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.inputs import may_be_kept, state
from odfbuild.engine.spark.results.executor import computes_here
from odfbuild.engine.spark.results.frames import read_every_row

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_KEPT_STATES = 64
_KEPT_BYTES = 1 << 30
"""Of a session, beside those that its requests use."""

_Key = tuple[object, ...]


class _State(NamedTuple):
    folder: Path
    plan: Node
    size: int


class SharedStates:
    """Those of a session, with files in `folder`; the ones asked for last stand at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: OrderedDict[_Key, _State] = OrderedDict()
        self._used: WeakKeyDictionary[SparkSession, set[_Key]] = WeakKeyDictionary()
        self._lock = Lock()

    def plan(self, spark: SparkSession, each: InputSlices) -> Node:
        """The analysed plan of the records that an input amounts to."""
        files = each.all_files()
        stats = [(str(file), file.stat()) for file in files]
        seen = [(name, one.st_ino, one.st_size, one.st_mtime_ns) for name, one in stats]
        key = (each.alias, each.last, each.vocab, str(each.schema), tuple(seen))
        with self._lock:
            self._used.setdefault(spark, set()).add(key)
            if key not in self._kept:
                folder = Path(tempfile.mkdtemp(dir=self.folder))
                plan = plan_of(state(spark, each, files, folder))
                size = sum(file.stat().st_size for file in folder.rglob("*"))
                self._kept[key] = _State(folder, plan, size)
            else:
                read_every_row(spark, each.schema)
            self._kept.move_to_end(key)
            self._let_go()
            return self._kept[key].plan

    def _let_go(self) -> None:
        """Of those that nobody has asked for for long, and that no request uses."""
        used = set().union(*self._used.values())
        size = sum(each.size for each in self._kept.values())
        for key in [key for key in self._kept if key not in used]:
            if size <= _KEPT_BYTES and len(self._kept) <= _KEPT_STATES:
                return
            gone = self._kept.pop(key)
            size -= gone.size
            shutil.rmtree(gone.folder, ignore_errors=True)


_of_session: WeakKeyDictionary[SparkContext, SharedStates] = WeakKeyDictionary()
_opening = Lock()


def shared_states(spark: SparkSession) -> SharedStates | None:
    """Those of the session that a request belongs to; `None` where others compute for it."""
    context = spark.sparkContext
    if not computes_here(spark) or not str(context.master).startswith("local"):
        return None
    with _opening:
        if context not in _of_session:
            folder = Path(context.getConf().get("spark.local.dir"))
            folder.mkdir(parents=True, exist_ok=True)
            _of_session[context] = SharedStates(
                Path(tempfile.mkdtemp(prefix="states-", dir=folder))
            )
        return _of_session[context]


def state_plan(spark: SparkSession, each: InputSlices, scratch: Path) -> Node:
    """The analysed plan of what an input amounts to; `scratch` is the folder of the request.

    Proofs share nothing, and neither do inputs that a request has copies of its own of.
    """
    shared = shared_states(spark) if may_be_kept(each) else None
    if shared is None:
        return plan_of(state(spark, each, each.all_files(), scratch))
    return shared.plan(spark, each)
