"""Rename variables and macros of templates, where all their uses are certain; and find these uses.

A name of a matrix is known in its template and in the query beside it. A variable of odfbuild.yaml
is known in all templates that do not give the name a value themselves, and in what they include.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from odfbuild.api.editor.places import opened, refused, views_of
from odfbuild.api.editor.subjects import Opened, Span, View, matrix_names
from odfbuild.api.editor.template_names import TemplateNames, template_names
from odfbuild.errors import Location, PlanError
from odfbuild.project.config import FILE
from odfbuild.project.load import definition_files
from odfbuild.project.source import TEMPLATE_SUFFIX, YAML_SUFFIXES

_NAME = re.compile(r"[A-Za-z_]\w*")
_FRONT = ("matrix", "include", "exclude")


def rename_variable(view: View, name: str, new: str) -> list[tuple[Span, str]]:
    """All edits that give a variable or macro another name; errors as `renamed`."""
    if not _NAME.fullmatch(new):
        raise PlanError(
            f"'{new}' cannot be a name in a template: names are letters, digits and '_'",
            code="E0384",
            help="choose another name",
        )
    taken = [there.file for there in _files(view) if new in _known_in(there)]
    taken += [FILE] if new in view.found.project.config.vars else []
    if taken:
        raise PlanError(
            f"{taken[0]} uses the name '{new}' already", code="E0384", help="choose another name"
        )
    return [(each, new) for each in variable_uses(view, name)]


def variable_uses(view: View, name: str) -> list[Span]:
    """All places of a variable or macro; `PlanError` E0383 where one is not certain."""
    if name in {each.path[-1] for each in matrix_names(view.opened)}:
        return _of_matrix(view, name)
    macro = [each for each in _shared(view) if name in _understood(each).macros]
    if macro:
        if len(macro) > 1:
            raise refused(f"several files define a macro '{name}'", "rename it by hand")
        return _of_macro(view, macro[0], name)
    if name in view.found.project.config.vars:
        return _of_project(view, name)
    raise refused(
        f"'{name}' is no variable or macro of the project, or gets its value in this template",
        "rename it by hand, in this file",
    )


def _of_matrix(view: View, name: str) -> list[Span]:
    defined = view.opened.defined_in
    found = [
        Span(defined.file, *entry.key)
        for entry in defined.outline.entries
        if entry.document == 0 and entry.path[:1] and entry.path[0] in _FRONT
        if entry.key is not None and entry.path[-1] == name and len(entry.path) in (2, 3)
    ]
    here = [each.opened for each in views_of(view, defined.file)]
    if any(_understood(each).includes for each in here):
        _check_unused(_shared(view), name, "which this template may include")
    for there in here:
        found += _plain(there, name)
    return found


def _of_macro(view: View, macro: Opened, name: str) -> list[Span]:
    found = _plain(macro, name)
    for there in _files(view):
        names = _understood(there)
        if there.file == macro.file:
            continue
        if names.takes_macro(macro.file, name):
            found += _plain(there, name)
        for use in names.through_module(macro.file, name):
            found.append(Span(there.file, use.start, use.end))
    return found


def _of_project(view: View, name: str) -> list[Span]:
    settings = opened(view, FILE)
    found = [] if settings is None else [*_keys(settings, name, above="vars")]
    folder = view.found.project.config.root / "vars"
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        values = opened(view, f"vars/{path.name}") if path.suffix in YAML_SUFFIXES else None
        found += [] if values is None else [*_keys(values, name, above=None)]
    for there in _files(view):
        if name not in {each.path[-1] for each in matrix_names(there)}:
            found += _plain(there, name)
    return found


def _keys(there: Opened, name: str, above: str | None) -> Iterator[Span]:
    for entry in there.outline.entries:
        owner = entry.path[-2] if len(entry.path) > 1 else None
        if entry.key is not None and entry.path[-1:] == (name,) and owner == above:
            yield Span(there.file, *entry.key)


def _known_in(there: Opened) -> set[object]:
    """All names that a template uses or gives a value."""
    names = _understood(there)
    used = {each.name for each in names.uses if each.owner is None}
    return {*used, *names.bound, *names.macros, *(e.path[-1] for e in matrix_names(there))}


def _plain(there: Opened, name: str) -> list[Span]:
    names = _understood(there)
    found = [Span(there.file, each.start, each.end) for each in names.named(name)]
    if found and name in names.bound:
        raise refused(
            f"this file gives '{name}' a value itself", "rename it by hand", Location(there.file)
        )
    return found


def _check_unused(files: list[Opened], name: str, why: str) -> None:
    for there in files:
        if any(_understood(there).named(name)):
            raise refused(f"{there.file}, {why}, uses '{name}'", "rename it by hand")


def _understood(there: Opened) -> TemplateNames:
    names = template_names(there.text)
    if names is None:
        raise refused("this template is not understood", "correct it first", Location(there.file))
    return names


def _files(view: View) -> list[Opened]:
    """All templates of definitions and queries, and what they may include."""
    config = view.found.project.config
    paths = definition_files(config.datasets, config.boundary.check_open, lambda _, __: None)
    found = []
    for path in paths:
        if path.endswith(TEMPLATE_SUFFIX):
            found += [each.opened for each in views_of(view, path.removeprefix(f"{config.root}/"))]
    return [*found, *_shared(view)]


def _shared(view: View) -> list[Opened]:
    """The files of `macros/` and `templates/`."""
    root = view.found.project.config.root
    paths = (
        path
        for folder in ("macros", "templates")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    )
    found = map(partial(opened, view), (str(path.relative_to(root)) for path in paths))
    return [each for each in found if each is not None]
