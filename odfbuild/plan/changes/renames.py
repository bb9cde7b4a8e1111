"""Renames of datasets: declared in `moved:` of odfbuild.yaml; the chain stays the same.

A dataset is its chain, and its name is where the chain lies. A rename is pending while the chain
lies under the old name; a declaration that was carried out may stay, for others who have not
applied it yet. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from odfbuild.errors import Errors, Location, ProjectError
from odfbuild.odf.identity import is_name
from odfbuild.plan.model import Action, DatasetPlan, Plan, Reason, ReasonCode

Value = TypeVar("Value")


def pending_renames(
    moved: Mapping[str, str],
    defined: Collection[str],
    chains: Collection[str],
    place_of: Callable[[str], Location | None] = lambda old: None,
) -> dict[str, str]:
    """Committed names by new ones, as they are defined, of the renames that are still to be done.

    `moved` is what is declared, `defined` are the names of all definitions, `chains` those of all
    chains. Raises `Errors` with every E0350, a rename that contradicts definitions or chains, at
    the place that `place_of` knows for an old name.
    """
    names = {name.lower(): name for name in defined}
    committed = {name.lower(): name for name in chains}
    found: dict[str, str] = {}
    errors = []
    for old, new in moved.items():
        problem = _problem(old, new, names, committed)
        if problem is not None:
            message, help = problem
            place = place_of(old)
            errors.append(
                ProjectError(message, code="E0350", dataset=new, location=place, help=help)
            )
        elif old.lower() in committed:
            if names[new.lower()] in found:
                other = found[names[new.lower()]]
                errors.append(_twice(old, other, new, place_of(old)))
            found[names[new.lower()]] = committed[old.lower()]
    if errors:
        raise Errors(errors)
    return found


def _problem(
    old: str, new: str, names: Mapping[str, str], committed: Mapping[str, str]
) -> tuple[str, str] | None:
    """What is wrong with a declared rename and the way out; `None`: nothing."""
    if old.lower() not in committed:
        # Done already, or never begun here.
        return None
    if not all(map(is_name, new.split("/"))):
        return f"'{new}' is not a dataset name", "correct it in `moved` of odfbuild.yaml"
    if old.lower() in names:
        return (
            f"'{old}' is declared as renamed to '{new}', and is still defined",
            "remove the definition with the old name, or the line in `moved` of odfbuild.yaml",
        )
    if new.lower() not in names:
        return (
            f"'{old}' is declared as renamed to '{new}', and nothing defines '{new}'",
            f"give a definition the name '{new}', or correct `moved` in odfbuild.yaml",
        )
    if new.lower() in committed:
        return (
            f"'{old}' cannot be renamed to '{new}': both have a chain",
            "give it another name, or remove the line in `moved` of odfbuild.yaml",
        )
    return None


def _twice(old: str, other: str, new: str, place: Location | None) -> ProjectError:
    return ProjectError(
        f"'{old}' and '{other}' are both declared as renamed to '{new}'",
        code="E0350",
        dataset=new,
        location=place,
        help="correct `moved` in odfbuild.yaml",
    )


def renamed(values: Mapping[str, Value], renames: Mapping[str, str]) -> Mapping[str, Value]:
    """Values by name, as if the renames (old names by new ones) were done."""
    if not renames:
        return values
    new_names = {old: new for new, old in renames.items()}
    return {new_names.get(name, name): value for name, value in values.items()}


def with_renames(plan: Plan, renames: Mapping[str, str]) -> Plan:
    """A plan made as if the renames were done, with the renames themselves in it."""
    if not renames:
        return plan
    datasets = tuple(
        _renaming(dataset, renames[dataset.name]) if dataset.name in renames else dataset
        for dataset in plan.datasets
    )
    return replace(plan, datasets=datasets)


def _renaming(dataset: DatasetPlan, old: str) -> DatasetPlan:
    if dataset.refusal is not None:
        return dataset
    reason = Reason(code=ReasonCode.RENAMED, message=f"its name was {old}")
    return replace(
        dataset,
        renamed_from=old,
        actions=(Action.RENAME, *dataset.actions),
        reasons=(reason, *(each for each in dataset.reasons if dataset.actions)),
    )
