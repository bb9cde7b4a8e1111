"""Options for reading a project: environment and values of variables."""

from __future__ import annotations

from pathlib import Path

from odfbuild.values import Value


class Overrides(Value, kw_only=True):
    """The environment, the branch, files of variables, and variables as text by name.

    `process` are those of the process environment, without their prefix. `offline`: blocks of
    chains are not fetched from the storage.
    """

    env: str | None = None
    branch: str | None = None
    files: tuple[Path, ...] = ()
    process: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    offline: bool = False


NO_OVERRIDES = Overrides()
