"""Errors of the command line, with suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.cli.exit_codes import EXIT_USAGE
from odfbuild.errors import PlanError

if TYPE_CHECKING:
    import typer


_OF_INGEST = ("--source", "--event-time", "--idempotency-key")
"""Options of `ingest`, which was called `push` in earlier releases."""


def usage_error(error: typer.TyperException) -> PlanError:
    """E0376 for what the parser of the command line refused."""
    # Only errors that belong to a command know their context.
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "odfbuild"
    meant = _meant(error, context)
    more = f"`{command} --help` tells what it takes"
    return PlanError(
        _message(error, context, command),
        code="E0376",
        help=f"did you mean {' or '.join(map(repr, meant))}? {more}" if meant else more,
        exit_code=EXIT_USAGE,
    )


def _message(error: typer.TyperException, context: Any, command: str) -> str:
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        return f"`{command}` needs a command: {', '.join(_commands(context))}"
    if kind == "NoSuchOption":
        return f"there is no option '{error.option_name}'"  # type: ignore[attr-defined]
    if (unknown := _unknown_command(error, context)) is not None:
        return f"there is no command '{unknown}'"
    # Values are checked by pydantic, which says what kind of error it is in front.
    text = error.format_message().replace(": Value error, ", ": ").rstrip(".")
    text = text.replace(": Input should be ", ": it should be ")
    return text[:1].lower() + text[1:]


def _meant(error: typer.TyperException, context: Any) -> list[str]:
    """What was probably meant, the likeliest first."""
    from difflib import get_close_matches

    if type(error).__name__ == "NoSuchOption":
        if context.command.name == "push" and error.option_name in _OF_INGEST:  # type: ignore[attr-defined]
            return ["odfbuild ingest DATASET FILE"]
        known = [name for each in context.command.get_params(context) for name in each.opts]
        wrong = error.option_name  # type: ignore[attr-defined]
        begun = [name for name in known if name.startswith(wrong)]
        return begun[:1] or get_close_matches(wrong, known, n=1)
    unknown = _unknown_command(error, context)
    return [] if unknown is None else get_close_matches(unknown, _commands(context), n=2)


def _unknown_command(error: typer.TyperException, context: Any) -> str | None:
    """The first word that should have named a command, if that is what is wrong."""
    message = getattr(error, "message", "")
    if not message.startswith("No such command "):
        return None
    return str(message).partition("'")[2].partition("'")[0]


def _commands(context: Any) -> list[str]:
    names: list[str] = context.command.list_commands(context)
    return names
