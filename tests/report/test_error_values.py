"""Errors are values: nothing changes one that somebody else may hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import odfbuild
from odfbuild import errors
from odfbuild.errors import (
    ChainError,
    CheckError,
    Errors,
    InDefinition,
    InSettings,
    Location,
    OdfbuildError,
    ProjectError,
    StaleHeadError,
)

PACKAGE = Path(odfbuild.__file__).parent
FIELDS = {
    field.name
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, OdfbuildError)
    for field in fields(each)
} | {"errors"}
KINDS = (OdfbuildError, ProjectError, CheckError, ChainError, StaleHeadError)


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes of other objects than `self` that a module assigns to."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    owner = part.value
                    if not (isinstance(owner, ast.Name) and owner.id == "self"):
                        yield part


def caught(tree: ast.AST) -> set[str]:
    """Names that exceptions have."""
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.name}


@pytest.mark.parametrize(
    "room", sorted({p.relative_to(PACKAGE).parts[0] for p in PACKAGE.glob("*/**/*.py")})
)
def test_no_module_assigns_to_an_attribute_of_an_error(room: str) -> None:
    found = []
    for file in (PACKAGE / room).rglob("*.py"):
        tree = ast.parse(file.read_text())
        names = caught(tree)
        for each in assigned(tree):
            of_error = isinstance(each.value, ast.Name) and each.value.id in names
            if of_error or each.attr in FIELDS:
                found.append(f"{file.relative_to(PACKAGE)}:{each.lineno} {ast.unparse(each)}")
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_refuses_assignment_and_can_be_raised_through_context_managers(
    kind: type[OdfbuildError],
) -> None:
    @contextmanager
    def passing() -> Iterator[None]:
        try:
            yield
        except OdfbuildError as error:
            raise error.noted("on its way") from None

    with pytest.raises(kind) as raised, passing():
        raise kind("wrong", code="E0101")
    error = raised.value
    assert (str(error), error.notes) == ("wrong", ("on its way",))
    for name in ("message", "location", "notes", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(error, name, "other")


def test_what_is_made_of_an_error_leaves_it_as_it_is_and_keeps_its_kind() -> None:
    error = ChainError("wrong", code="E0604", rule="SequenceIntegrity", dataset="a")
    moved = error.at(Location("a.yaml", 3)).noted("one")
    assert isinstance(moved, ChainError)
    assert (moved.rule, moved.dataset, str(moved.location)) == (
        "SequenceIntegrity",
        "a",
        "a.yaml:3",
    )
    assert (error.location, error.notes) == (None, ())
    assert moved.or_at(Location("b.yaml")) is moved


def test_errors_that_travel_together_are_changed_one_by_one() -> None:
    both = Errors([StaleHeadError("one"), Errors([ProjectError("two")])])
    found = both.mapped(lambda each: each.noted("n"))
    assert isinstance(found, Errors)
    assert [(e.message, e.notes) for e in found.apart()] == [("one", ("n",)), ("two", ("n",))]
    assert (found.exit_code, both.apart()[0].notes) == (5, ())
    with pytest.raises(FrozenInstanceError):
        both.errors = ()


def test_places_within_definitions_and_settings_are_paths_and_spelled_for_people() -> None:
    query = InDefinition.query(1, 2, 3, "select x", 6)
    assert (query.path, str(query)) == (("queries", 1), "queries[1]:2:3")
    assert str(InDefinition.of("fetch", "filter")) == "fetch.filter"
    assert str(InDefinition.of("prepare", 0)) == "prepare[0]"
    assert str(InSettings.of("checks", "a", 0)) == "checks.a[0]"
