"""Values that nobody gave are not converted, nor is text where text is asked for.

Typer converts by pydantic, whose import takes longer than most commands run.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from typer.core import TyperCommand


class KeepsDefaults:
    """Put before a class of commands: what has its default already goes to the verb as it is."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options and arguments, of which those that have to be converted are."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _unless_default(parameter)
        return parameters


class Verb(KeepsDefaults, TyperCommand):
    """A command that is not a group."""


def _unless_default(parameter: Any) -> Any:
    convert = parameter.process_value

    def process(ctx: Any, value: Any) -> Any:
        if _is_plain_text(parameter, value):
            return parameter.callback(ctx, parameter, value) if parameter.callback else value
        is_default = value is parameter.default and isinstance(value, Enum | int | float | None)
        if not is_default or parameter.required:
            return convert(ctx, value)
        if value is None and (parameter.multiple or parameter.nargs == -1):
            value = ()
        return parameter.callback(ctx, parameter, value) if parameter.callback else value

    return process


def _is_plain_text(parameter: Any, value: Any) -> bool:
    """Whether a parameter takes any text and was given some; what is no Unicode is converted."""
    wanted = parameter.type_descriptor
    return (
        wanted.annotation is str
        and wanted.parameter_info.parser is None
        and isinstance(value, str)
        and value.isprintable()
    )
