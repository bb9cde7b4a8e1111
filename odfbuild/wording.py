"""Numbers in sentences, for every room that says something to people."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """`1 record`, `12,400 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
