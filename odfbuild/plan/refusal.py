"""Refusals and places in definitions as plain values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odfbuild.errors import Location, OdfbuildError, PlanError


def refusal_to_data(error: OdfbuildError | None) -> dict[str, Any] | None:
    """What a refusal says, where, and the way out."""
    if error is None:
        return None
    return {
        "code": error.code,
        "message": error.message,
        "source": place_to_data(error.location),
        "notes": list(error.notes),
        "help": error.help,
    }


def refusal_from_data(dataset: str, data: Mapping[str, Any] | None) -> PlanError | None:
    """The refusal of a dataset, or of a table of it, that `refusal_to_data` gave."""
    if data is None:
        return None
    return PlanError(
        data["message"],
        code=data["code"],
        location=place_from_data(data["source"]),
        notes=tuple(data["notes"]),
        help=data["help"],
        dataset=dataset,
    )


def place_to_data(place: Location | None) -> dict[str, Any] | None:
    """A place in a file."""
    if place is None:
        return None
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "instance": place.instance,
    }


def place_from_data(data: Mapping[str, Any] | None) -> Location | None:
    """The place that `place_to_data` gave."""
    if data is None:
        return None
    return Location(data["file"], data["line"], data["column"], instance=data["instance"])
