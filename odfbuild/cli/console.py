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
from codecs import getincrementaldecoder
from collections.abc import Callable
from io import RawIOBase, TextIOWrapper
from threading import RLock
from typing import Any, BinaryIO, Literal, TextIO

from odfbuild.cli.runner import Guarded, harmless_json
from odfbuild.errors import OdfbuildError
from odfbuild.report.forms.visible import visible
from odfbuild.values import Value

_PATIENCE_SECONDS = 10.0
SCREEN = RLock()
"""Held while text is printed, and while bars begin or end, which replace the streams.

Text that another thread had begun to print would go where the bars are drawn.
"""


class Shown(RawIOBase, BinaryIO):
    """Bytes of UTF-8 that a terminal shows, and does not obey."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        """It takes bytes, and gives none."""
        return True

    def write(self, data: Any) -> int:
        """See `BinaryIO`."""
        self._stream.write(visible(self._decoder.decode(bytes(data))))
        return len(data)

    def flush(self) -> None:
        """See `BinaryIO`."""
        self._stream.flush()


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


class Console(Value):
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
        self._print(text, "stdout")

    def document(self, text: str) -> None:
        """Print lines of a file: as they are where they become one again, else as `result`."""
        self.exactly(text if text.endswith("\n") else text + "\n")

    def exactly(self, text: str) -> None:
        """Print the content of a file, such as what a filter gives; a terminal shows it."""
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()

    def data(self, value: Any) -> None:
        """Print what was asked for, as JSON."""
        text = json.dumps(value, indent=2, ensure_ascii=not _is_utf8(sys.stdout))
        self.result(harmless_json(text))

    def show(self, as_json: bool, data: Callable[[], Any], text: Callable[[], str]) -> None:
        """Print what was asked for, in one of its two forms."""
        if as_json:
            self.data(data())
        else:
            self.result(text())

    def bytes_out(self) -> BinaryIO:
        """Where to write a result in a format of its own; a terminal gets text that is visible."""
        return Shown(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer

    def note(self, text: str) -> None:
        """Say something on the side; `--quiet` silences it."""
        if self.verbosity >= 0:
            self._print(text + "\n", "stderr")

    def log(self, record: dict[str, Any]) -> None:
        """Write a log record to stderr, as a line of JSON."""
        text = json.dumps(record, ensure_ascii=not _is_utf8(sys.stderr))
        sys.stderr.write(harmless_json(visible(text)) + "\n")
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

            self._print(render_error(*errors, color=self._colors(sys.stderr)), "stderr")

    def confirm(self, question: str) -> bool:
        """Ask on the terminal; anything but `y` or `yes` is a no.

        The question goes where the plan went if that is a pipe, such as to `tee`: it comes after
        it then. Where the other end shows nothing, it is asked on the terminal as well, later.
        """
        question = visible(question)
        stream = sys.stdout if _is_pipe(sys.stdout) else sys.stderr
        stream.write(f"{question} [y/N] ")
        stream.flush()
        if stream is sys.stdout and not select.select([sys.stdin], [], [], _PATIENCE_SECONDS)[0]:
            sys.stderr.write(f"\nWaiting for an answer. {question} [y/N] ")
            sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _print(self, text: str, to: Literal["stdout", "stderr"]) -> None:
        """The way of all text to a terminal: nothing in it is obeyed but our own colours."""
        with SCREEN:
            stream: TextIO = getattr(sys, to)
            text = _fitted(visible(text, colors=self._colors(stream)), stream)
            stream.write(text if text.endswith("\n") else text + "\n")
            stream.flush()

    def _colors(self, stream: TextIO) -> bool:
        if self.no_color or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"
