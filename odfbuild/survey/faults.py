"""Errors of single datasets: the others are planned.

A fault is of one dataset: its definition, its place in the graph, its chain, or a defect of ours
that shows with it. What concerns all of a project, such as `odfbuild.yaml`, is no fault but raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from odfbuild.errors import OdfbuildError, as_one, together
from odfbuild.plan.graph.dag import Graph
from odfbuild.project.model import Project


def faults_of(
    project: Project, graph: Graph, damaged: Mapping[str, OdfbuildError]
) -> dict[str, OdfbuildError]:
    """Faults by name: of definitions, of the graph, and of `damaged` chains; one for each dataset.

    A file of which nobody can tell what it defines has its path for a name.
    """
    return {name: as_one(each, name) for name, each in all_faults(project, graph, damaged).items()}


def all_faults(
    project: Project, graph: Graph, damaged: Mapping[str, OdfbuildError]
) -> dict[str, list[OdfbuildError]]:
    """The same with all errors of a dataset, one by one."""
    if not (project.wrong or graph.faults or damaged):
        return {}
    spelt = {each.folded: each.name for each in project.definitions}
    found: dict[str, list[OdfbuildError]] = {}
    for wrong in project.wrong:
        name = spelt.setdefault(wrong.label.lower(), wrong.label)
        parts = (part for each in wrong.errors for part in each.apart())
        found.setdefault(name, []).extend(p.changed(dataset=p.dataset or wrong.name) for p in parts)
    for name, errors in graph.faults.items():
        found.setdefault(name, []).extend(errors)
    for name, error in damaged.items():
        errors_of = found.setdefault(spelt.setdefault(name.lower(), name), [])
        if error not in errors_of:  # of aliases that differ only in case, both have the same
            errors_of.append(error)
    return found


def fault_of(cache: Path, doing: str, name: str, error: Exception) -> OdfbuildError:
    """The fault that an exception is which came while `doing` something with a dataset."""
    from odfbuild.ingest.unexpected_errors import unforeseen

    if isinstance(error, OdfbuildError):
        return as_one([error], name)
    return unforeseen(error, cache, f"{doing} '{name}'", name)


def check_all_are_known(project: Project) -> None:
    """Raise what is wrong with files that could define any dataset.

    Before anything is deleted because nothing defines it.
    """
    unknown = [error for wrong in project.wrong if wrong.name is None for error in wrong.errors]
    if unknown:
        raise together(unknown)
