"""Keep the runner of GitHub Actions from taking output for commands.

A runner reads all that a step prints, and obeys lines that begin with `::` and lines that contain
`##[`. What projects and data say must be neither, so that a pull request sets no outputs and hides
no text: a space is put between these signs. Files are left as they are, since no runner reads them,
and so are the commands of `Console.command`.
Stopping commands by a token does not do: stdout and stderr reach the runner in no certain order.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

# The runner skips blanks before a command, and compares signs by the rules of a language, which
# pass over characters of no width. Which ones is for its language to know: none beyond ASCII stays.
_NO_WIDTH = r"[^\t\n\v\f\r\x20-\x7e]*"
_BLANK = r"[^\n\r\x21-\x7e]*"
_COMMAND = re.compile(
    rf"(?:^|(?<=[\n\r])){_BLANK}:{_NO_WIDTH}(?=:)|\#{_NO_WIDTH}\#{_NO_WIDTH}(?=\[)"
)

_LINE_END = re.compile("[\n\r]")


def is_github() -> bool:
    """Whether this is a step of a workflow."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def harmless(text: str) -> str:
    """Text in which the runner finds no command; doing it again changes nothing."""
    return _COMMAND.sub(r"\g<0> ", text)


def harmless_json(text: str) -> str:
    """The same for JSON, whose values stay as they are; its lines never begin with a command."""
    return text.replace("##[", "##\\u005b") if is_github() else text


class Guarded:
    """A stream of text whose lines are `harmless`, also those that are written in parts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._open = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, so that the runner takes no line of it for a command."""
        safe = harmless(self._open + text)[len(self._open) :]
        self._stream.write(safe)
        self._open = _LINE_END.split(self._open + safe)[-1]
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write`."""
        self.write("".join(lines))

    def command(self, line: str) -> None:
        """Write a line that the runner is to obey."""
        self._stream.write(line)


@contextmanager
def guarded_output() -> Iterator[None]:
    """In a step of a workflow, nothing that is printed is a command, but for our own."""
    if not is_github():
        yield
        return
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_guarded(each) for each in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _guarded(stream: TextIO) -> Any:
    try:
        is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        is_file = False
    return stream if is_file else Guarded(stream)
