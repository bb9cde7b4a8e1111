"""What is wrong with the data of a file of ours that is declared with `declared_settings`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odfbuild.declared_settings import document_schema
from odfbuild.errors import Location, Path, ProjectError
from odfbuild.odf.decode_errors import describe
from odfbuild.wording import did_you_mean


def misfits(
    form: Any, data: Any, place: Callable[[Path], Location], help: str
) -> list[ProjectError]:
    """All that keeps `data` from being read as `form`; `place` finds a value in its file."""
    # Only a library that takes a tenth of a second to import can say what is wrong.
    from jsonschema import Draft202012Validator

    errors = []
    for found in Draft202012Validator(document_schema("", form)).iter_errors(data):
        path = tuple(found.absolute_path)
        if found.validator == "additionalProperties":
            known = list(found.schema["properties"])
            for key in sorted(set(found.instance) - set(known)):
                errors.append(
                    ProjectError(
                        f"unknown key '{key}'",
                        code="E0104",
                        location=place((*path, key)),
                        help=did_you_mean(key, known, f"known keys are: {', '.join(known)}"),
                    )
                )
            continue
        errors.append(
            ProjectError(
                _said(found.validator, _wanted(found), found.instance, found.message),
                code="E0105",
                location=place(path),
                notes=_about(found),
                help=help,
            )
        )
    return errors


_NAMES = {
    "string": "a string",
    "object": "an object",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
}


def _wanted(found: Any) -> Any:
    """What a rule asks for: of a pattern, values that have its form."""
    return found.schema["examples"] if found.validator == "pattern" else found.validator_value


def _about(found: Any) -> tuple[str, ...]:
    """Which texts fit, for whoever cannot tell by those that do."""
    about = found.schema.get("description")
    return (about,) if found.validator == "pattern" and about else ()


def _said(rule: Any, value: Any, found: Any, message: str) -> str:
    """What is wrong in the words of all other errors; `message` is the library's."""
    if rule == "type":
        return f"expected {_NAMES[value]}; found {describe(found)}"
    if rule == "pattern":
        return f"expected something like {', '.join(value)}; found {describe(found)}"
    if rule in ("const", "enum"):
        allowed = (value,) if rule == "const" else value
        one_of = "one of " * (len(allowed) > 1)
        return f"expected {one_of}{', '.join(map(str, allowed))}; found {describe(found)}"
    return message.replace("is a required property", "is missing")
