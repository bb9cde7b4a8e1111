"""The engines of a project behind one contract: the built-in Spark, and programs that are engines.

Which of them computes a transformation follows from the version that its chain records, and else
from `engines` in the settings. The built-in one starts when something is first asked of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from odfbuild.engine.contract import (
    Done,
    EngineFactory,
    EngineInfo,
    Origin,
    Provenance,
    ProvenanceTask,
    Request,
    ScreenTask,
    StepProgress,
    Together,
    TransformTask,
    ValidateTask,
)
from odfbuild.engine.in_pieces import PiecesTask, WholeTask
from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.process.client import Client, Host
from odfbuild.errors import Code, EngineError
from odfbuild.sql.mode import BY_CHECKPOINT
from odfbuild.sql.translate.named import (
    Engines,
    RemoteEngine,
    image_of_release,
    is_remote_release,
    remote_of,
)
from odfbuild.sql.translate.runnable import ran_on_spark

if TYPE_CHECKING:
    from odfbuild.odf.model import TransformSql


class ManyEngines:
    """`contract.Engine` over several; `built_in` starts Spark, at once if it is `needed`."""

    def __init__(
        self, built_in: EngineFactory, engines: Engines, host: Host, *, needed: bool = False
    ) -> None:
        self._spark = LazyEngine(built_in)
        if needed:
            self._spark.warm_up()
        self._engines, self._host = engines, host
        self._lock = Lock()
        self._clients: dict[tuple[str, str], Client] = {}

    def run(self, request: Request[Done]) -> Done:
        """See `contract.Engine`."""
        work: Callable[[Request[Done]], Done] = self._by_program(request) or self._spark.get().run
        return work(request)

    def progress(self, dataset: str) -> StepProgress | None:
        """See `contract.Engine`; programs tell nothing but that they live."""
        spark = self._spark.peek()
        return spark.progress(dataset) if spark else None

    def about(self) -> EngineInfo:
        """See `contract.Engine`."""
        spark = self._spark.peek()
        if spark is not None:
            return spark.about()
        found = {n: each for n, each in self._engines.items() if isinstance(each, RemoteEngine)}
        versions = ", ".join(each.release(name) for name, each in found.items())
        places = ", ".join(each.place for each in found.values())
        return EngineInfo(places, versions, "of each engine", name="programs compute")

    def stop(self) -> None:
        """See `contract.Engine`."""
        for client in self._clients.values():
            client.stop()
        self._spark.stop()

    # --- Who computes what ---

    def _by_program(self, request: Any) -> Callable[[Any], Any] | None:
        """What carries out a request that is not for Spark."""
        match request:
            case ValidateTask(preprocess=False) | TransformTask():
                client = self._client(request.transform, request.dataset)
                return client.run if client else None
            case ScreenTask() if remote_of(request.transform, self._engines) is not None:
                return _nothing  # programs cannot tell without columns
            case PiecesTask() | WholeTask() if self._configured(request.transform) is not None:
                return _nothing  # programs have no executors
            case Together(tasks=(TransformTask(transform=each), *_)) if self._configured(each):
                return _nothing  # programs do one step after the other
            case ProvenanceTask() if self._configured(request.step.transform) is not None:
                return _whole
        return None

    def _configured(self, transform: TransformSql) -> tuple[str, RemoteEngine] | None:
        """The program that computes a transformation, and its version; `None`: Spark does."""
        found, version = remote_of(transform, self._engines), transform.version
        now = found.release(transform.engine) if found else None
        if found is not None and now is not None and version in (None, now):
            return now, found
        if version is not None and is_remote_release(version):
            image = image_of_release(version)
            base = found if found is not None and found.image else RemoteEngine(image=image)
            # What is not at hand is told when it is asked for.
            return version, replace(base, image=image, address=None, command=())
        if found is None or now is None or ran_on_spark(transform):
            return None
        return now, found

    def _client(self, transform: TransformSql, dataset: str) -> Client | None:
        chosen = self._configured(transform)
        if chosen is None:
            return None
        version, engine = chosen
        if engine.place == "" or (engine.image and not self._is_here(version, engine)):
            raise _not_here(transform, version, dataset)
        with self._lock:
            key = (transform.engine.lower(), version)
            if key not in self._clients:
                self._clients[key] = Client(key[0], version, engine, self._host)
            return self._clients[key]

    def _is_here(self, version: str, engine: RemoteEngine) -> bool:
        """Whether an earlier image can be had; the present one is told of when it is started."""
        if engine in self._engines.values():
            return True
        return self._host.runtime().has(engine.image or "")


def _nothing(request: object) -> None:
    return None


def _whole(task: ProvenanceTask) -> Provenance:
    """Programs tell of no single records."""
    why = f"engine '{task.step.transform.engine}' does not tell which records it needed"
    whole = {each.alias: why for each in task.step.inputs}
    return Provenance(BY_CHECKPOINT, tuple(Origin({}, whole) for _ in task.asked))


def _not_here(transform: TransformSql, version: str, dataset: str) -> EngineError:
    pull = f"get it: podman pull {version}" if image_of_release(version) else "start that version"
    return EngineError(
        f"engine '{transform.engine}' is not here in the version that computed this: {version}",
        code=Code.RECORDED_ENGINE_MISSING,
        dataset=dataset,
        help=f"{pull}; or let the present one prove that it gives the same: "
        f"odfbuild engine deprecate {dataset}",
    )
