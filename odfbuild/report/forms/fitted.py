"""Text for a terminal that is narrower than its lines: broken between words, never within one."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[\d;]*m")
_HANGING = 4
# Words, and what stands together in parentheses: a time and its unit.
_WORD = re.compile(r"( *)(\([^() ]+(?: [^() ]+){0,3}\)|[^ ]+)")


def fitted(text: str, columns: int) -> str:
    """`text` with every line broken between words so that it fits, if words do."""
    return "\n".join(_broken(line, columns) for line in text.split("\n"))


def _broken(line: str, columns: int) -> str:
    """A line that is too long as several: those after the first are indented further."""
    if len(_ANSI.sub("", line)) <= columns:
        return line
    indent = len(line) - len(line.lstrip(" "))
    parts, width = [line[:indent]], indent
    is_first_word = True
    # Runs of spaces align columns: they stay, except where the line is broken.
    for space, word in _WORD.findall(line[indent:]):
        length = len(_ANSI.sub("", word))
        if is_first_word or width + len(space) + length <= columns:
            parts.append(space + word)
            width += len(space) + length
        else:
            parts.append("\n" + " " * (indent + _HANGING) + word)
            width = indent + _HANGING + length
        is_first_word = False
    return "".join(parts)
