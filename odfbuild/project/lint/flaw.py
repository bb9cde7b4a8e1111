"""What the rules of `odfbuild lint` find."""

from __future__ import annotations

from odfbuild.values import Value

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
