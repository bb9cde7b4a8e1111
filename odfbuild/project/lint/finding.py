"""What a rule of `lint` found, with its place."""

from __future__ import annotations

from dataclasses import dataclass

from odfbuild.errors import Location
from odfbuild.project.settings.lint import Rule


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: where, how bad (`warn`, `error`), and what to do; `can_fix`: by `fix`."""

    rule: Rule
    level: str
    message: str
    help: str
    place: Location
    dataset: str | None = None
    notes: tuple[str, ...] = ()
    can_fix: bool = False
