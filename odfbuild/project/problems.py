"""Problems of decoded data as errors with a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odfbuild.errors import Code, Location, ProjectError
from odfbuild.odf.decode_errors import DecodeError

_CODES = {
    "unknown_field": "E0104",
    "missing_field": "E0106",
    "invalid_type": "E0105",
    "invalid_value": "E0107",
}
_HELP = {
    "unknown_field": "remove it; `odfbuild schema dataset` lists the keys of every object",
    "missing_field": "add it; `odfbuild schema dataset` lists the keys of every object",
    "invalid_type": "write a value of that type",
    "invalid_value": "`odfbuild schema dataset` says what may stand there",
}


def located(problem: DecodeError, place: Location) -> ProjectError:
    """The error that a user sees for one problem of a document."""
    return ProjectError(
        problem.message, code=_CODES[problem.kind], location=place, help=_way_out(problem)
    )


def _way_out(problem: DecodeError) -> str:
    if problem.suggestion:
        return f"did you mean '{problem.suggestion}'?"
    if problem.kind == "unknown_field" and problem.path[-1] == "<<":
        return (
            "YAML 1.2 has no merge keys: write the keys out, or use a template (docs/templates.md)"
        )
    return _HELP[problem.kind]


def is_about_value(problem: DecodeError) -> bool:
    """Whether the place of a problem is the value itself, not its key."""
    return problem.kind in ("invalid_type", "invalid_value")


def old_form_problem(
    data: Any,
    place_of: Callable[[tuple[str | int, ...]], Location],
    file: str,
    is_template: bool = False,
) -> ProjectError | None:
    """One error with the way out, in place of one for every key that was called otherwise.

    `None` when nothing of a document that cannot be decoded is in the form of an older version.
    """
    from odfbuild.project.old_form import old_parts

    parts = old_parts(data)
    if not parts:
        return None
    return ProjectError(
        "this definition has the syntax of an earlier version of Open Data Fabric",
        code=Code.EARLIER_VERSION,
        location=place_of(parts[0].path),
        notes=tuple(dict.fromkeys(part.message for part in parts)),
        help="templates have to be changed by hand: see the notes"
        if is_template
        else f"`odfbuild migrate {file}` shows it in the current syntax, "
        f"`odfbuild migrate --write {file}` rewrites it",
    )
