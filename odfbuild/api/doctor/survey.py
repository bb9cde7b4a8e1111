"""All checks, in the order in which they are shown."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.api.doctor import files, machine, project, repository
from odfbuild.engine.settings import DEFAULTS, EngineSettings
from odfbuild.errors import OdfbuildError
from odfbuild.extras import INSTALL, has_engine
from odfbuild.inspect.health import Check, look, warn
from odfbuild.project.config import find_root, load_config
from odfbuild.project.load import load_project
from odfbuild.project.overrides import Overrides

if TYPE_CHECKING:
    from odfbuild.project.model import Config


def examine(directory: Path | None, given: Overrides, *, deep: bool) -> list[Check]:
    """Look at everything; never raises for what is wrong. Only a `deep` look starts a JVM, and
    connects to the databases and topics that sources read.

    Outside of a project the machine is looked at.
    """
    config, about_project = _config(directory, given)
    settings = config.engine if config else DEFAULTS
    checks = [
        *look("odfbuild", machine.programs),
        *look("libraries", machine.libraries),
        *_of_engine(settings, config),
        *look("git", partial(repository.git, config)),
        *look("completion", machine.completion),
        *about_project,
    ]
    if config is not None:
        checks += _of_project(config, directory, given, deep=deep)
    if deep:
        reach = config.reach if config else None
        checks += look("session", partial(machine.running_engine, settings, reach))
    return checks


def _of_engine(settings: EngineSettings, config: Config | None) -> list[Check]:
    if not has_engine():
        return [warn("spark", "not installed: odfbuild can plan, but not apply", INSTALL)]
    return [
        *look("java", machine.java),
        *look("engine", partial(machine.engine, settings)),
        *look("resident engine", partial(machine.resident, config.root if config else None)),
    ]


def _config(directory: Path | None, given: Overrides) -> tuple[Config | None, list[Check]]:
    try:
        find_root(directory)
    except OdfbuildError as error:
        return None, [warn("project", error.message, error.help or "")]
    found: list[Config] = []

    def load() -> list[Check]:
        found.append(load_config(directory, given))
        return []

    problems = look("project", load)
    return (found[0] if found else None), problems


def _of_project(
    config: Config, directory: Path | None, given: Overrides, *, deep: bool
) -> list[Check]:
    workspace = config.on_head.workspace()
    checks = [
        *look("file system", partial(files.file_system, config)),
        *look("cache", partial(files.cache, config, time.time())),
        *look("keys", partial(files.keys, config)),
        *look("chains", partial(project.chains, workspace)),
        *look("locks", partial(project.locks, workspace)),
    ]
    loaded = []

    def definitions() -> list[Check]:
        loaded.append(load_project(directory, given))
        return list(project.definitions(loaded[0]))

    checks += look("project", definitions)
    if not loaded:
        return checks
    checks += look("identities", partial(project.identities, loaded[0], workspace))
    sources = project.sources(loaded[0])
    runtime = config.ingest.container_runtime
    users = project.containers(sources)
    return [
        *checks,
        *look("credentials", partial(machine.credentials, project.variables(sources))),
        *look("containers", partial(machine.container, runtime[0] if runtime else None, users)),
        *(look("databases", partial(project.databases, sources, config)) if deep else ()),
        *(look("topics", partial(project.topics, sources, config)) if deep else ()),
        *(look("http apis", partial(project.apis, sources, config)) if deep else ()),
        *(look("sftp servers", partial(project.servers, sources, config)) if deep else ()),
        *(look("slots", partial(project.replication_slots, sources, config)) if deep else ()),
    ]
