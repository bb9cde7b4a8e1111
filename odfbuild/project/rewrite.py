"""Replace the text of a file that people maintain, and show what would change."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

from odfbuild.errors import ProjectError
from odfbuild.store.files import write_file


def text_diff(before: str, after: str, file: str) -> str:
    """The change as a unified diff; empty when there is none."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(unified_diff(old, new, file, file))


def replace_text(file: Path, text: str, command: str) -> None:
    """Write the new text in one step; `command` is what to run again when that cannot be done."""
    try:
        write_file(file, text.encode(), file.stat().st_mode & 0o777)
    except OSError as error:
        raise ProjectError(
            f"{file} cannot be written: {error.strerror or error}",
            code="E0112",
            help=f"correct its permissions, or free disk space, and run `{command}` again",
        ) from None
