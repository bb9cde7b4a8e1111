"""Where output goes and how it looks: results to stdout, progress and errors to stderr.

Colour follows the conventions NO_COLOR, FORCE_COLOR and CLICOLOR_FORCE; `CI` means that nobody
watches: no prompts, no bars.
"""

from __future__ import annotations

import json
import os
import sys
from io import TextIOWrapper
from typing import Any, TextIO

from odfbuild.errors import OdfbuildError
from odfbuild.values import dataclass


def take_any_text() -> None:
    """Let stdout and stderr take text that their encoding lacks: `?` stands in for a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not _is_utf8(stream):
            stream.reconfigure(errors="replace")


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


@dataclass(frozen=True, slots=True)
class Console:
    """How to talk to whoever started the program. `verbosity`: -1 quiet, 0 normal, 1 and more."""

    no_color: bool = False
    verbosity: int = 0

    @property
    def color(self) -> bool:
        """Whether results on stdout are coloured."""
        return self._colors(sys.stdout)

    @property
    def interactive(self) -> bool:
        """Whether a person can answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")

    @property
    def live(self) -> bool:
        """Whether a progress bar can be drawn on stderr."""
        dumb = os.environ.get("TERM") == "dumb" or os.environ.get("CI")
        return sys.stderr.isatty() and not dumb and self.verbosity >= 0

    def result(self, text: str) -> None:
        """Print what was asked for."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def data(self, value: Any) -> None:
        """Print what was asked for, as JSON."""
        self.result(json.dumps(value, indent=2, ensure_ascii=not _is_utf8(sys.stdout)))

    def note(self, text: str) -> None:
        """Say something on the side; `--quiet` silences it."""
        if self.verbosity >= 0:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def log(self, record: dict[str, Any]) -> None:
        """Write a log record to stderr, as a line of JSON."""
        sys.stderr.write(json.dumps(record, ensure_ascii=not _is_utf8(sys.stderr)) + "\n")
        sys.stderr.flush()

    def command(self, line: str) -> None:
        """Tell the service that runs this job something, by a line that it looks for."""
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def error(self, *errors: OdfbuildError) -> None:
        """Print errors with their places and the ways out."""
        if errors:
            from odfbuild.report.errors import render_error

            sys.stderr.write(render_error(*errors, color=self._colors(sys.stderr)))
            sys.stderr.flush()

    def confirm(self, question: str) -> bool:
        """Ask on the terminal; anything but `y` or `yes` is a no."""
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _colors(self, stream: TextIO) -> bool:
        if self.no_color or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"
