"""Options that several verbs take together, declared once and handed over as one value.

A verb that says `selection: SelectionOptions` takes the four options of which a selection is made,
one that says `state: Context` the context that the global options make.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

import typer

from odfbuild.cli.context import Context
from odfbuild.values import Value


class Together(Value):
    """Metadata of an annotation: single options as (annotation, default), and what they make."""

    options: Mapping[str, tuple[Any, Any]]
    join: Callable[..., Any]


def apart(verb: Callable[..., Any]) -> Callable[..., Any]:
    """`verb` with a signature of single options, as Typer reads it."""
    signature = inspect.signature(verb, eval_str=True)
    states: list[str] = []
    groups: dict[str, Together] = {}
    single: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        group = _group(annotation)
        if group is None:
            if annotation is Context:
                states.append(parameter.name)
                annotation = typer.Context
            kind = inspect.Parameter.KEYWORD_ONLY
            single.append(parameter.replace(kind=kind, annotation=annotation))
            continue
        groups[parameter.name] = group
        single += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
            for name, (annotation, default) in group.options.items()
        ]

    def call(**given: Any) -> Any:
        for name in states:
            given[name] = given[name].obj
        for name, group in groups.items():
            given[name] = group.join(*[given.pop(option) for option in group.options])
        return verb(**given)

    update_wrapper(call, verb)
    call.__signature__ = signature.replace(parameters=single)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in single}
    return call


def _group(annotation: Any) -> Together | None:
    metadata = getattr(annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, Together)), None)
