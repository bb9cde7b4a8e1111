"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 record`, `12,400 records`; `plural` where that is not the noun with an `s`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is spelled most like `word`, whatever its case; `None`: none is."""
    from difflib import get_close_matches

    spelled = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), spelled, n=1)
    return spelled[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about a word that is none of `known`: take the closest, or `otherwise`."""
    close = closest(word, known)
    return f"did you mean '{close}'?" if close else otherwise


def named(names: Sequence[str]) -> str:
    """The first of these names in quotes, and how many more there are."""
    shown = ", ".join(f"'{each}'" for each in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
