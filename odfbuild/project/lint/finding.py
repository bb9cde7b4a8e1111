"""What a rule of `lint` found, with its place."""

from __future__ import annotations

from odfbuild.errors import Location
from odfbuild.project.settings.lint import Rule
from odfbuild.values import Value


class Finding(Value):
    """What a rule found: where, how bad (`warn`, `error`), and what to do; `can_fix`: by `fix`."""

    rule: Rule
    level: str
    message: str
    help: str
    place: Location
    dataset: str | None = None
    notes: tuple[str, ...] = ()
    can_fix: bool = False


# --- Flaws ---


Path = tuple[str | int, ...]


class Flaw(Value):
    """What a rule found in a definition.

    `path` leads to the value below `content` (empty: the whole of it), `query` to line and column
    (from 1) in query number `step` of the transform at `path`, `length` is how much to underline.
    """

    rule: str
    message: str
    help: str
    path: Path = ()
    query: tuple[int, int, int] | None = None
    length: int = 1
    notes: tuple[str, ...] = ()
