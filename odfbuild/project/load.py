"""Read a whole project: every definition, every problem at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from odfbuild.errors import Errors, OdfbuildError
from odfbuild.project.config import load_config
from odfbuild.project.definition_cache import DefinitionCache
from odfbuild.project.model import Config, Definition, Project
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.source import TEMPLATE_SUFFIX, YAML_SUFFIXES
from odfbuild.store.collector import paused_collector


def load_project(start: Path | None = None, given: Overrides = NO_OVERRIDES) -> Project:
    """The project around `start` (the current folder); raises `Errors` with all problems."""
    config = load_config(start, given)
    with paused_collector():
        return _load(config)


def _load(config: Config) -> Project:
    cache = DefinitionCache(config)
    files = definition_files(config.datasets, config.boundary.check_open)
    found = {file: cache.get(file) for file in files}
    new = [file for file in files if found[file] is None]
    if new:
        found.update(_read(config, cache, new))
    cache.save()
    definitions = chain.from_iterable(each or () for each in found.values())
    return Project(config=config, definitions=tuple(definitions))


def _read(
    config: Config, cache: DefinitionCache, files: list[str]
) -> dict[str, tuple[Definition, ...]]:
    """The definitions of files that are not in the cache, or everything that is wrong with them."""
    from odfbuild.project.definitions import read_file

    found: dict[str, tuple[Definition, ...]] = {}
    errors: list[OdfbuildError] = []
    for file in files:
        try:
            found[file] = cache.put(file, read_file(config, file))
        except OdfbuildError as error:
            errors += error.apart()
    if errors:
        raise Errors(sorted(errors, key=_place))
    return found


def definition_files(folder: Path, check_link: Callable[[str], None]) -> list[str]:
    """Paths of all definition files below `folder`, sorted; hidden ones are left out.

    `check_link` raises for a link that must not be followed.
    """
    return sorted(_scan(str(folder), check_link))


def _scan(folder: str, check_link: Callable[[str], None]) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            check_link(entry.path)
        if entry.is_dir():
            yield from _scan(entry.path, check_link)
        elif entry.name.endswith((*YAML_SUFFIXES, TEMPLATE_SUFFIX)):
            yield entry.path


def _place(error: OdfbuildError) -> tuple[str, int, int]:
    place = error.location
    return (place.file, place.line or 0, place.column or 0) if place else ("", 0, 0)
