"""All objects of the protocol by name, for the generators of schemas and tables."""

from __future__ import annotations

import ast
import inspect
import itertools
from enum import Enum
from importlib import import_module
from types import UnionType
from typing import Any

from odfbuild.odf.introspect import is_member, is_object

PARTS = (
    "data_schema",
    "fetch",
    "prepare",
    "read",
    "transform",
    "merge",
    "data",
    "events",
    "manifests",
    "messages",
)
"""Modules of the model, each after those it builds on."""


def enums(part: str | None = None) -> dict[str, type[Enum]]:
    """Enums of the protocol or of one part of it, in order of definition."""
    return {name: value for name, value in _own(part) if issubclass(value, Enum)}


def objects(part: str | None = None) -> dict[str, type]:
    """Objects of the protocol or of one part of it, in order of definition."""
    return {name: value for name, value in _own(part) if is_object(value)}


def unions(part: str | None = None) -> dict[str, tuple[type, ...]]:
    """Unions of the protocol or of one part of it, members in the order of their tags."""
    found: dict[str, tuple[type, ...]] = {}
    for each in [part] if part else PARTS:
        for name, value in vars(_module(each)).items():
            members = value.__args__ if isinstance(value, UnionType) else (value,)
            is_union = all(map(is_member, members)) and getattr(value, "__name__", "") != name
            if is_union and all(member.__module__ == _module(each).__name__ for member in members):
                found[name] = members
    return found


def part_doc(part: str) -> str:
    """The first line about a part of the model."""
    return (inspect.getdoc(_module(part)) or "").partition("\n")[0]


def union_docs() -> dict[str, str]:
    """What the model says of its unions, which have no docstrings at run time."""
    found: dict[str, str] = {}
    for part in PARTS:
        body = ast.parse(inspect.getsource(_module(part))).body
        for node, after in itertools.pairwise(body):
            match node, after:
                case ast.Assign(targets=[ast.Name(name)]), ast.Expr(ast.Constant(str(text))):
                    found[name] = text
    return found


def _own(part: str | None = None) -> list[tuple[str, type]]:
    return [
        (name, value)
        for each in ([part] if part else PARTS)
        for name, value in vars(_module(each)).items()
        if isinstance(value, type)
        and value.__module__ == _module(each).__name__
        and value.__name__ == name
        and not value.__subclasses__()  # what several objects have in common is none itself
    ]


def _module(part: str) -> Any:
    return import_module(f"odfbuild.odf.model.{part}")
