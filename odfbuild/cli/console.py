"""Where output goes and how it looks: results to stdout, progress and errors to stderr.

Colour follows the conventions NO_COLOR, FORCE_COLOR and CLICOLOR_FORCE; `CI` means that nobody
watches: no prompts, no bars.
"""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from io import TextIOWrapper
from typing import Any, TextIO

from odfbuild.cli.runner import Guarded, harmless_json
from odfbuild.errors import OdfbuildError
from odfbuild.values import dataclass

_PATIENCE_SECONDS = 10.0


def take_any_text() -> None:
    """Let stdout and stderr take text that their encoding lacks: `?` stands in for a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not _is_utf8(stream):
            stream.reconfigure(errors="replace")


def _fitted(text: str, stream: TextIO) -> str:
    """Text with lines broken between words, where a terminal would break them anywhere."""
    if not stream.isatty():
        return text
    from shutil import get_terminal_size

    from odfbuild.report.forms.fitted import fitted

    return fitted(text, get_terminal_size().columns)


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


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
    def watched(self) -> bool:
        """Whether a person looks at stderr, and wants to see how work gets on."""
        return sys.stderr.isatty() and not os.environ.get("CI") and self.verbosity >= 0

    @property
    def live(self) -> bool:
        """Whether progress bars can be drawn on stderr; not beside what a pipe brings back."""
        dumb = os.environ.get("TERM") == "dumb"
        return self.watched and not dumb and not _is_pipe(sys.stdout)

    @property
    def shows_results(self) -> bool:
        """Whether results go to a terminal."""
        return sys.stdout.isatty()

    def result(self, text: str) -> None:
        """Print what was asked for."""
        text = _fitted(text, sys.stdout)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def data(self, value: Any) -> None:
        """Print what was asked for, as JSON."""
        text = json.dumps(value, indent=2, ensure_ascii=not _is_utf8(sys.stdout))
        self.result(harmless_json(text))

    def note(self, text: str) -> None:
        """Say something on the side; `--quiet` silences it."""
        if self.verbosity >= 0:
            sys.stderr.write(_fitted(text, sys.stderr) + "\n")
            sys.stderr.flush()

    def log(self, record: dict[str, Any]) -> None:
        """Write a log record to stderr, as a line of JSON."""
        text = json.dumps(record, ensure_ascii=not _is_utf8(sys.stderr))
        sys.stderr.write(harmless_json(text) + "\n")
        sys.stderr.flush()

    def command(self, line: str) -> None:
        """Tell the service that runs this job something, by a line that it looks for."""
        stream = sys.stderr
        write = stream.command if isinstance(stream, Guarded) else stream.write
        write(line + "\n")
        stream.flush()

    def error(self, *errors: OdfbuildError) -> None:
        """Print errors with their places and the ways out."""
        if errors:
            from odfbuild.report.errors import render_error

            text = render_error(*errors, color=self._colors(sys.stderr))
            sys.stderr.write(_fitted(text, sys.stderr))
            sys.stderr.flush()

    def confirm(self, question: str) -> bool:
        """Ask on the terminal; anything but `y` or `yes` is a no.

        The question goes where the plan went if that is a pipe, such as to `tee`: it comes after
        it then. Where the other end shows nothing, it is asked on the terminal as well, later.
        """
        stream = sys.stdout if _is_pipe(sys.stdout) else sys.stderr
        stream.write(f"{question} [y/N] ")
        stream.flush()
        if stream is sys.stdout and not select.select([sys.stdin], [], [], _PATIENCE_SECONDS)[0]:
            sys.stderr.write(f"\nWaiting for an answer. {question} [y/N] ")
            sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _colors(self, stream: TextIO) -> bool:
        if self.no_color or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"
