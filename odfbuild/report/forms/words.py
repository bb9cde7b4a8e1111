"""Numbers and pieces of text as people read them."""

from __future__ import annotations

from odfbuild.odf.multihash import Multihash
from odfbuild.report.forms.visible import visible
from odfbuild.wording import count

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")

COLORS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "dim": 2}


def size(number: int) -> str:
    """Bytes in decimal units with one digit: `812 bytes`, `40.3 KB`."""
    if number < 1000:
        return count(number, "byte")
    value = float(number)
    for unit in _UNITS:
        if value < 999.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable: the last unit takes everything")


def lasting(seconds: float) -> str:
    """How long something took: `0.4 s`, `2 min 5 s`, `3 h 20 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def short(block: Multihash | None) -> str:
    """The last digits of a hash, `-` for none."""
    return block.short if block else "-"


def paint(text: str, color: str | None, *, on: bool) -> str:
    """`text` in a colour if colours are on; it cannot bring any of its own."""
    return f"\x1b[{COLORS[color]}m{visible(text)}\x1b[0m" if on and color else text


def behind_window(records: int, of: str = "") -> str:
    """That records came too late for a window; `of` names where they came."""
    which = f"{count(records, 'record')}{f' of {of}' if of else ''}"
    verb = "is" if records == 1 else "are"
    return f"{which} arrived after the window was closed and {verb} left out"
