"""Exit codes of commands that ran; errors have their own codes."""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.errors import OdfbuildError

EXIT_CHANGES = 2
"""There are changes or drift, where --detailed-exitcode asks for it."""

EXIT_MISMATCH = 3
"""Something is not as it should be: histories, checked records, ages."""

EXIT_USAGE = 64
"""The command line is wrong."""

EXIT_INTERRUPTED = 130
"""As shells have it for SIGINT."""


def exit_code_of(errors: Iterable[OdfbuildError]) -> int:
    """How a command ends that showed the rest and told these errors; 0 where there are none."""
    return max((each.exit_code for each in errors), default=0)
