"""Options that several verbs take together, declared once and handed over as one value.

A verb that says `selection: SelectionOptions` takes the four options of which a selection is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any

from odfbuild.values import Value


class Together(Value):
    """Metadata of an annotation: single options as (annotation, default), and what they make."""

    options: Mapping[str, tuple[Any, Any]]
    join: Callable[..., Any]


def apart(verb: Callable[..., Any]) -> Callable[..., Any]:
    """`verb` with a signature of single options, as Typer reads it."""
    signature = inspect.signature(verb, eval_str=True)
    groups: dict[str, Together] = {}
    single: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        group = _group(parameter.annotation)
        if group is None:
            single.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        single += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
            for name, (annotation, default) in group.options.items()
        ]

    def call(**given: Any) -> Any:
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
