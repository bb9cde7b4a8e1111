"""Read a whole project: every definition, every problem at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.project.config import FILE, load_config
from odfbuild.project.definition_cache import DefinitionCache
from odfbuild.project.model import Config, Definition, Project, WrongDefinition
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.source import (
    QUERY_SUFFIXES,
    TEMPLATE_SUFFIX,
    UNIT_TEST_SUFFIXES,
    YAML_SUFFIXES,
    query_file_of,
)
from odfbuild.project.unsaved import unsaved_below, unsaved_texts
from odfbuild.python_gc import paused_collector

SHARED_FOLDERS = ("macros", "templates", "vars")
"""Folders of a project whose files any definition may depend on."""

_NO_DEFINITIONS = frozenset((FILE, *SHARED_FOLDERS))


def load_project(start: Path | None = None, given: Overrides = NO_OVERRIDES) -> Project:
    """The project around `start` (the current folder); raises `Errors` with all problems."""
    project = read_project(start, given)
    project.check()
    return project


def read_project(start: Path | None = None, given: Overrides = NO_OVERRIDES) -> Project:
    """The same project with all definitions that are right, beside those that are wrong."""
    config = load_config(start, given)
    with paused_collector():
        return _read(config)


def _read(config: Config) -> Project:
    cache = DefinitionCache(config)
    unsaved = unsaved_texts()
    wrong: list[WrongDefinition] = []

    def refuse(path: str, error: OdfbuildError) -> None:
        file = os.path.relpath(path, config.root)
        wrong.append(WrongDefinition(file=file, name=None, errors=(error,)))

    paths = _files(config.datasets, config.boundary.check_open, refuse)
    files = _definitions_among(paths)
    queries = {each for each in paths if each.endswith(QUERY_SUFFIXES)}
    beside = {file: name for file in files if queries and (name := query_file_of(file)) in queries}
    # Of what a template includes, the cache knows what is saved.
    renders_anew = any(unsaved_below(config.root / each) for each in ("macros", "templates"))
    is_unsaved = {
        file
        for file in (files if unsaved else ())
        if file in unsaved
        or beside.get(file) in unsaved
        or (renders_anew and file.endswith(TEMPLATE_SUFFIX))
    }
    found = {
        file: None if file in is_unsaved else cache.get(file, beside.get(file)) for file in files
    }
    unread = [file for file in files if found[file] is None]
    if unread:
        from odfbuild.project.definitions import read_file
    for file in unread:
        read = read_file(config, file)
        wrong += read.wrong
        # A file with mistakes is read again each time.
        is_kept = not read.wrong and file not in is_unsaved
        found[file] = cache.put(file, read.right, beside.get(file)) if is_kept else read.right
    if not unsaved:
        cache.save()
    definitions: Iterator[Definition]
    definitions = chain.from_iterable(each or () for each in found.values())
    if config.external:
        from odfbuild.project.references import with_names_here

        definitions = with_names_here(definitions, config)
    if config.portals:
        from odfbuild.project.portals import with_portals

        definitions = with_portals(list(definitions), config, wrong)
    right = tuple(definitions)  # which may find wrong ones, too
    return Project(config=config, definitions=right, wrong=tuple(wrong))


def definition_files(
    folder: Path, check_link: Callable[[str], None], refuse: Callable[[str, OdfbuildError], None]
) -> list[str]:
    """Paths of all definition files below `folder`, sorted; hidden ones are left out.

    So is what else the root of a project has of YAML, where all of it is such a folder. Links for
    which `check_link` raises are not followed: `refuse` is told why.
    """
    return _definitions_among(_files(folder, check_link, refuse))


def query_files(folder: Path, check_link: Callable[[str], None]) -> list[str]:
    """Paths of all files with the query of a definition below `folder`, as `definition_files`."""
    found = _files(folder, check_link, lambda _path, _error: None)
    return sorted(each for each in found if each.endswith(QUERY_SUFFIXES))


def unit_test_files(
    folder: Path, check_link: Callable[[str], None], refuse: Callable[[str, OdfbuildError], None]
) -> list[str]:
    """Paths of all files of unit tests below `folder`, as `definition_files`."""
    return sorted(filter(is_unit_test_file, _files(folder, check_link, refuse)))


def _definitions_among(paths: Iterable[str]) -> list[str]:
    suffixes = (*YAML_SUFFIXES, TEMPLATE_SUFFIX)
    return sorted(each for each in paths if each.endswith(suffixes) and not is_unit_test_file(each))


def is_unit_test_file(path: str) -> bool:
    """Whether a YAML file has unit tests of queries in it, and no definitions."""
    return path.endswith(UNIT_TEST_SUFFIXES)


def _files(
    folder: Path, check_link: Callable[[str], None], refuse: Callable[[str, OdfbuildError], None]
) -> set[str]:
    """Paths of files of YAML and of queries, with those that an editor has not saved yet."""
    found = {*_scan(str(folder), check_link, refuse, set())}
    for path in unsaved_below(folder):
        parts = path[len(str(folder)) + 1 :].split("/")
        is_other = parts[0] in _NO_DEFINITIONS and (folder / FILE).is_file()
        if path.endswith((*YAML_SUFFIXES, TEMPLATE_SUFFIX, *QUERY_SUFFIXES)) and not (
            is_other or any(part.startswith(".") for part in parts)
        ):
            found.add(path)
    return found


def _scan(
    folder: str,
    check_link: Callable[[str], None],
    refuse: Callable[[str, OdfbuildError], None],
    linked: set[str],
) -> Iterator[str]:
    """Paths of files of YAML and of queries; `linked` are the folders to which links led so far.

    Whether a link to a query may be followed is asked where it is read, with its definition.
    """
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    is_root = any(entry.name == FILE for entry in entries)
    for entry in entries:
        if entry.name.startswith(".") or (is_root and entry.name in _NO_DEFINITIONS):
            continue
        try:
            is_folder = entry.is_dir()
        except OSError:  # a link that leads to itself
            is_folder = False
        if not is_folder and entry.name.endswith(QUERY_SUFFIXES):
            yield entry.path
            continue
        if not is_folder and not entry.name.endswith((*YAML_SUFFIXES, TEMPLATE_SUFFIX)):
            continue
        if entry.is_symlink():
            try:
                check_link(entry.path)
                if is_folder:
                    _check_no_loop(entry.path, linked)
            except OdfbuildError as error:
                refuse(entry.path, error)
                continue
        if is_folder:
            yield from _scan(entry.path, check_link, refuse, linked)
        else:
            yield entry.path


def _check_no_loop(link: str, linked: set[str]) -> None:
    """Raise `ProjectError` for a link to a folder around it, or to one that is read already."""
    real = os.path.realpath(link)
    above = os.path.realpath(Path(link).parent)
    if real in linked or f"{above}/".startswith(f"{real}/"):
        raise ProjectError(
            f"this link leads to a folder that is read already: {real}",
            code="E0127",
            location=Location(link),
            help="remove the link",
        )
    linked.add(real)
