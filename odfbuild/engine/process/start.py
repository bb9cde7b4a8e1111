"""Start the engines of a project: the built-in Spark, and what `engines` names beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.sql.translate.named import Engines, RemoteEngine
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine, EngineFactory
    from odfbuild.engine.process.container import Runtime


class Place(Value):
    """Where engines work: folders of the project, and what runs containers."""

    root: Path
    cache: Path
    runtime: tuple[str, ...]
    arguments: tuple[str, ...]


def start_engines(
    engines: Engines, place: Place, built_in: EngineFactory, *, needed: bool = False
) -> Engine:
    """What `built_in` starts; beside programs it is started when it is asked, or is `needed`."""
    if not any(isinstance(each, RemoteEngine) for each in engines.values()):
        return built_in()
    from odfbuild.engine.process.client import Host
    from odfbuild.engine.process.container import Runtime
    from odfbuild.engine.process.engine import ManyEngines

    @cache
    def runtime() -> Runtime:
        found = Runtime.of(place.runtime, place.arguments)
        found.sweep()
        return found

    return ManyEngines(built_in, engines, Host(place.root, place.cache, runtime), needed=needed)
