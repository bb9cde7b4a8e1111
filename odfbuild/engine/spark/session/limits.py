"""Limits of a step: time, and the files that it may read.

The last fences behind the check of the query: work that takes too long is cancelled, and a plan
that reads any file but those it was given is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from odfbuild.engine.settings import STEP_SECONDS
from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.errors import Code, QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odfbuild.engine.contract import TransformTask


@contextmanager
def within(seconds: float | None, dataset: str, cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel`, again and again, when the work inside takes longer than `seconds`.

    Raises `QueryError` E0545 in place of whatever the cancelled work raises.
    """
    if seconds is None:
        yield
        return
    done, late = Event(), Event()

    def watch() -> None:
        if done.wait(seconds):
            return
        late.set()
        cancel()
        # Between two jobs there is nothing to cancel.
        while not done.wait(0.5):
            cancel()

    watcher = Thread(target=watch, name=f"limit of {dataset}", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise _too_long(dataset, seconds) from error
        raise
    finally:
        done.set()
        watcher.join()


def _too_long(dataset: str, seconds: float) -> QueryError:
    return QueryError(
        f"a step took longer than {seconds:g} seconds and was cancelled",
        code=Code.STEP_TOO_LONG,
        dataset=dataset,
        notes=("nothing of it was committed",),
        help="look for a join or a sequence() that gives far more rows than meant, or raise "
        f"{STEP_SECONDS} (engine.stepSeconds in odfbuild.yaml)",
    )


def files_read(frame: DataFrame, task: TransformTask, beside: Path | None = None) -> set[Path]:
    """What the plan of `frame` reads; `QueryError` E0504 for other files than those of `task`.

    What stands in for inputs is in its scratch folder, or in the folder `beside`.
    """
    if Catalyst(frame.sparkSession).is_at_hand(plan_of(frame)):
        return set()  # Spark itself plans all of it to tell
    read = {Path(unquote(urlparse(uri).path)).resolve() for uri in frame.inputFiles()}
    others = read - {file.resolve() for each in task.inputs for file in each.files}
    if others:  # most steps read what is new, and need not list the rest
        known = [*task.result_files(), *(file for each in task.inputs for file in each.all_files())]
        slices = [one.path for each in task.inputs for one in (*each.earlier(), *each.slices)]
        others -= {file.resolve() for file in (*known, *slices)}
        made = [folder.resolve() for folder in (task.scratch, beside) if folder is not None]
        others = {file for file in others if not any(map(file.is_relative_to, made))}
    if others:
        raise QueryError(
            f"the query would read {min(others)}, which holds no records of its inputs",
            code="E0504",
            dataset=task.dataset,
            help="a query may read its inputs only",
        )
    return read
