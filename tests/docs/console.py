"""Console blocks of documents: the commands in them, and what they say the output is.

    ```console
    $ odfbuild version
    odfbuild 0.1.0
    ```

A line that starts with `$ ` is a command, those with `> ` right after it continue it, and the lines
up to the next one are its output. `…` stands for any text in a line, a line of `…` alone for any
lines. A command may fail when the next one is `echo $?`. `cd` alone holds for all that follow.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tests.cli.real import BINARY, forked

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOW_EXIT_CODE = "echo $?"
_CHANGE_FOLDER = re.compile(r"cd (\S+)")
_NO_SHELL = re.compile(r"odfbuild (?:[\w .,:=@/+-]|'[^']*')*")
"""A command that says the same without a shell."""


@dataclass(frozen=True)
class Command:
    """A command and the output that the document promises."""

    text: str
    output: str


def commands(document: Path) -> list[Command]:
    """All commands of a document, in order."""
    return [c for block in _BLOCK.findall(document.read_text()) for c in _commands(block)]


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        first, *rest = part.split("\n")
        more = list(takewhile(lambda line: f"{line} ".startswith("> "), rest))
        text = "\n".join([first, *(line[2:] for line in more)])
        yield Command(text, "\n".join(rest[len(more) :]).rstrip())


def run_all(
    listed: list[Command], folder: Path, programs: Path = Path(sys.executable).parent
) -> list[str]:
    """Run the commands one after the other in `folder`; what is not as promised.

    `programs` is where `odfbuild` is.
    """
    wrong = []
    code = 0
    for command, following in zip(listed, [*listed[1:], None], strict=True):
        if change := _CHANGE_FOLDER.fullmatch(command.text):
            folder /= change.group(1)
            continue
        output, code = _run(command.text, folder, code, programs)
        may_fail = following is not None and following.text == _SHOW_EXIT_CODE
        if code != 0 and not may_fail:
            wrong.append(f"$ {command.text}\nended with {code}:\n{output}")
        elif not matches(command.output, output):
            wrong.append(f"$ {command.text}\npromised:\n{command.output}\n\nprinted:\n{output}")
    return wrong


def print_of(
    texts: list[str], folder: Path, programs: Path = Path(sys.executable).parent
) -> list[str]:
    """What commands print that run one after the other in `folder`; `cd` prints nothing."""
    printed = []
    for text in texts:
        if change := _CHANGE_FOLDER.fullmatch(text):
            folder /= change.group(1)
        output, code = ("", 0) if change else _run(text, folder, 0, programs)
        if code:
            raise RuntimeError(f"$ {text}\nended with {code}:\n{output}")
        printed.append(output)
    return printed


def _run(text: str, folder: Path, last_code: int, programs: Path) -> tuple[str, int]:
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    installed = programs == BINARY.parent and "BASH_ENV" not in environment
    if installed and _NO_SHELL.fullmatch(text):
        said = forked(folder, shlex.split(text)[1:], environment)
        return said.text.rstrip(), said.code
    done = subprocess.run(
        ["bash", "-c", f"(exit {last_code})\n{text}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=400,
    )
    return done.stdout.rstrip(), done.returncode


def matches(promised: str, printed: str) -> bool:
    """Whether the output is what the document shows, up to `…` and spaces at line ends."""
    if not promised:
        return True
    lines = [line.rstrip() for line in promised.splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else r".*?".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in lines
    )
    return re.fullmatch(pattern, printed + "\n") is not None
