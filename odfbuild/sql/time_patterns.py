"""What to write instead of a pattern of dates or times in a read step.

Patterns are those of Java's SimpleDateFormat, which earlier definitions could have; functions of
Spark take nearly the same. Source: Spark, "Datetime Patterns for Formatting and Parsing".
"""

from __future__ import annotations

import re

_FUNCTIONS = {"dateFormat": "to_date", "timestampFormat": "to_timestamp"}
_QUOTED = re.compile(r"'[^']*'")
_NOT_PARSED = "YwWuEFqQ"
"""Letters that the functions refuse when they read a text, or take for something else."""


def instead_of_format(option: str, pattern: str) -> str:
    """How to convert a column of text that is written after the `pattern` of an option."""
    text = _QUOTED.sub("", pattern)
    letters = "".join(letter for letter in _NOT_PARSED if letter in text)
    declare = "declare the column as STRING and"
    if letters:
        named = " and ".join(f"`{letter}`" for letter in letters)
        return (
            f"{declare} take the text apart in `preprocess`, such as by regexp_extract(): "
            f"Spark reads no texts by the letter{'s' if letters[1:] else ''} {named}"
        )
    quote = '"' if "'" in pattern else "'"
    years = "; `yy` is a year from 2000 on" if re.search(r"(?<!y)yy(?!y)", text) else ""
    return (
        f"{declare} convert it in `preprocess`: "
        f"{_FUNCTIONS[option]}(COLUMN, {quote}{pattern}{quote}){years}"
    )
