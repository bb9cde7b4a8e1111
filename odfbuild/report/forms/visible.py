r"""Text as people may see it: what a terminal or a browser would obey, or hide, is spelt out.

Values, names and messages come from whoever wrote a file, and a terminal obeys what stands in them:
it moves the cursor, takes another title, or shows letters in another order than they have. Such
characters are written as in JSON (`\u001b`), so that text which is JSON means the same as before.
"""

from __future__ import annotations

import re

_HIDDEN = (
    "\0-\x08\x0b-\x1f\x7f-\x9f"  # controls, but the tabulator and the end of a line
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f"  # without a width
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # directions, and ends of lines
    "\ud800-\udfff\U000e0000-\U000e0fff"  # halves of characters, and tags
)
# Joiners belong to many scripts and to emoji; beside letters of ASCII they only hide.
_JOINERS = "(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])"
_COLOR = r"\x1b\[(?:0|1|2|3[1-6](?:;1)?)m"

_ALL = re.compile(f"[{_HIDDEN}]|{_JOINERS}")
_BUT_COLORS = re.compile(f"({_COLOR})|[{_HIDDEN}]|{_JOINERS}")


def visible(text: str, *, colors: bool = False) -> str:
    """`text` without what acts on a terminal, or stands there unseen.

    With `colors`, those that odfbuild itself uses stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return (_BUT_COLORS if colors else _ALL).sub(_spelt, text)


def _spelt(found: re.Match[str]) -> str:
    if found.re is _BUT_COLORS and found[1]:
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{int.from_bytes(units[at : at + 2], 'big'):04x}" for at in range(0, len(units), 2)
    )
