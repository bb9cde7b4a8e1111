"""Options for reading a project: environment and values of variables."""

from __future__ import annotations

from pathlib import Path

from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The environment, the branch, files of variables, and variables as text by name.

    `process` are those of the process environment, without their prefix.
    """

    env: str | None = None
    branch: str | None = None
    files: tuple[Path, ...] = ()
    process: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()


NO_OVERRIDES = Overrides()
