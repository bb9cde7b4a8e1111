"""What is most likely wrong with a text that is no YAML: where, and the line as it should be.

A parser says where it could not go on. People look for the line that they have to change, which is
often another one: where a text lost its indentation, a quote opened, a merge left its marks. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from odfbuild.values import Value


class Stop(Value):
    """Where a parser gave up, and why in its words; `since` is where what it read began.

    Places are lines and columns, from 0.
    """

    problem: str
    at: tuple[int, int]
    since: tuple[int, int] | None


class Mistake(Value):
    """What to tell: line and column count from 0."""

    message: str
    line: int
    column: int
    help: str
    length: int = 1


def mistake_in(text: str, stop: Stop) -> Mistake | None:
    """What is most likely wrong; `None` where only the parser's own words can be told."""
    lines = [line[:_LONGEST] for line in text.splitlines()]
    return next((found for look in _LOOKS if (found := look(lines, stop)) is not None), None)


_LONGEST = 1000
"""Characters of a line that are looked at: nobody writes longer ones by hand."""

_CONFLICT = re.compile(r"(?:<{7}|\|{7}|>{7})(?: |$)")


def _conflict(lines: Sequence[str], _: Stop) -> Mistake | None:
    """Marks of a merge of Git, which always begin a line."""
    for number, line in enumerate(lines):
        if _CONFLICT.match(line):
            return Mistake(
                "a merge conflict of Git is not resolved",
                number,
                0,
                "keep what is right of both sides, and remove the lines of `<<<<<<<`, `=======` "
                "and `>>>>>>>`",
                length=7,
            )
    return None


def _tab(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """Tabs in the indentation of the line, or of the one where what is broken began."""
    for line, column in (stop.at, *((stop.since,) if stop.since else ())):
        before = _line(lines, line)[: column + 1]
        if "\t" in before and not before.strip(" \t-"):
            return Mistake(
                "tabs cannot indent it",
                line,
                before.index("\t"),
                "indent with spaces, in an editor that turns tabs into them",
            )
    return None


_HEADER = re.compile(r"( *(?:- +)*)(?:([\w.$/-]+):\s+)?[|>][-+]?\s*(?:#.*)?$")
_OTHER = re.compile(
    r"\s*(?:#|-(?:\s|$)|---|\.\.\.|\?\s|[\"'{}\[\]%]|[\w.$/@-]+\s*:(?:\s|$)|$)", re.ASCII
)
"""Lines that can stand behind a text of several lines."""


def _text_of_lines(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """The first line of a text behind `|` or `>` that is not indented as the text."""
    number = 0
    while number < len(lines) and number <= stop.at[0]:
        header = _HEADER.match(lines[number])
        number += 1
        if header is None or (header[2] is None and "-" not in header[1]):
            continue
        key = header[2]
        column = len(header[1]) if key else header[1].rindex("-")
        indent: int | None = None
        while number < len(lines):
            line = lines[number]
            here = len(line) - len(line.lstrip(" "))
            if line.strip():
                if here <= column or here < (indent or 0):
                    break
                indent = here if indent is None else indent
            number += 1
        if number >= len(lines) or number > stop.at[0] or _OTHER.match(lines[number]):
            continue
        wanted = indent or column + 2
        line = lines[number].strip()
        name = f"`{key}`" if key else "the text above"
        return Mistake(
            f"the text of {name} ends above this line, which is not indented as far",
            number,
            len(lines[number]) - len(lines[number].lstrip(" ")),
            f"indent all lines of the text alike, by {wanted} spaces",
            length=len(line),
        )
    return None


_PAIR = re.compile(r"(\s*(?:- +)*(?:[\w.$/-]+):[ \t]+)(\S.*?)((?:[ \t]+#.*)?)$", re.ASCII)


def _colon(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A colon within a value, or a key that is indented further than the one above it."""
    if "mapping values are not allowed" not in stop.problem:
        return None
    number, column = stop.at
    line = _line(lines, number)
    pair = _PAIR.match(line)
    if pair is not None and column > len(pair[1]) and pair[2][0] not in "\"'[{&*!|>":
        return Mistake(
            "`: ` within a value begins another one",
            number,
            column,
            f"put the text in quotes: {_quoted(pair).strip()}",
        )
    above = next((each for each in reversed(lines[:number]) if each.strip()), "")
    indent, before = _column_of_key(line), _column_of_key(above)
    if indent is not None and before is not None and indent > before and _PAIR.match(above):
        return Mistake(
            "this line is indented further than the one above, which has a value already",
            number,
            indent,
            f"indent it by {before} spaces, as the line above",
            length=column - indent,
        )
    return None


def _no_colon(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A line that should be `key: value`, and has no colon or no blank behind it."""
    if "could not find expected ':'" not in stop.problem or stop.since is None:
        return None
    number, column = stop.since
    line = _line(lines, number)
    words = re.match(r"([\w.$/-]+)(?::| *= *)(\S.*)$", line[column:], re.ASCII)
    correction = f"write `{words[1]}: {words[2].strip()}`" if words else None
    return Mistake(
        "this line is neither `key: value` nor part of what stands above it",
        number,
        column,
        correction or "write `key: value`; indent the line if it goes on with the text above",
        length=len(line[column:].rstrip()),
    )


def _first_letter(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A value that begins with a sign of YAML: `path: *.csv`."""
    number = (stop.since or stop.at)[0]
    pair = _PAIR.match(_line(lines, number))
    if pair is None or pair[2][0] not in "@%`*&" or "\t" in pair[1]:
        return None
    return Mistake(
        f"a text that begins with `{pair[2][0]}` needs quotes",
        number,
        len(pair[1]),
        f"put it in quotes: {_quoted(pair).strip()}",
        length=len(pair[2]),
    )


_ENDS = {"'": "'", '"': '"', "[": "]", "{": "}"}


def _open(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A quote or bracket that is not closed on its line."""
    if stop.since is None or stop.since[0] == stop.at[0]:
        return None
    number, column = stop.since
    begins = _line(lines, number)[column : column + 1]
    if begins not in _ENDS or "block" in stop.problem:
        return None
    what = "quote" if begins in "\"'" else "bracket"
    return Mistake(
        f"the {what} that opens here is not closed",
        number,
        column,
        f"add the `{_ENDS[begins]}` that belongs to it",
    )


def _open_at_end(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A bracket at the end of a text, which the parser places behind that end."""
    text = lines[-1].rstrip() if lines else ""
    if stop.at[0] < len(lines) or "node content" not in stop.problem or text[-1:] not in ("[", "{"):
        return None
    return Mistake(
        "the bracket that opens here is not closed",
        len(lines) - 1,
        len(text) - 1,
        f"add the `{_ENDS[text[-1]]}` that belongs to it",
    )


def _behind(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """Text behind the end of a value in quotes or brackets, as in `'it's'`."""
    number, column = stop.at
    pair = _PAIR.match(_line(lines, number))
    if pair is None or column <= len(pair[1]) or pair[2][0] not in _ENDS:
        return None
    what = "quote" if pair[2][0] in "\"'" else "bracket"
    inner = pair[2]
    if what == "quote" and inner[-1] == inner[0] and len(inner) > 1:
        inner = inner[1:-1]  # the quotes were meant to be around all of it
    return Mistake(
        f"the value ends with its closing {what}, and there is more behind it",
        number,
        column,
        f"put all of it in quotes: {pair[1].strip()} {_in_quotes(inner)}",
    )


def _between(lines: Sequence[str], stop: Stop) -> Mistake | None:
    """A key whose column is that of no mapping that is open there."""
    if "did not find expected key" not in stop.problem and "'-' indicator" not in stop.problem:
        return None
    number, column = stop.at
    if _line(lines, number)[:column].strip():
        return None
    is_item = _line(lines, number)[column:].startswith("- ")
    columns = sorted(set(_open_columns(lines[:number], dashes=is_item)))
    lower = [each for each in columns if each < column]
    higher = [each for each in columns if each > column]
    if column in columns or not higher:
        return None
    fitting = " or ".join(str(each) for each in (*lower[-1:], higher[0]))
    return Mistake(
        "this line is indented as far as none of those that it could belong to",
        number,
        column,
        f"indent it by {fitting} spaces",
        length=len(_line(lines, number).strip()),
    )


_LOOKS: tuple[Callable[[Sequence[str], Stop], Mistake | None], ...] = (
    *(_conflict, _tab, _text_of_lines, _colon, _no_colon),
    *(_first_letter, _open, _open_at_end, _behind, _between),
)


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def _quoted(pair: re.Match[str]) -> str:
    return f"{pair[1]}{_in_quotes(pair[2])}{pair[3]}"


def _in_quotes(value: str) -> str:
    if '"' in value or "\\" in value:
        return "'" + value.replace("'", "''") + "'"
    return f'"{value}"'


def _column_of_key(line: str) -> int | None:
    """Where the key of a line begins, behind dashes; `None`: it has no key."""
    found = re.match(r"( *(?:- +)*)[\w.$/-]+:(?:\s|$)", line, re.ASCII)
    return None if found is None else len(found[1])


def _open_columns(lines: Sequence[str], *, dashes: bool) -> Iterator[int]:
    """Columns of the keys, or dashes, beside which a line below these lines can stand."""
    lowest: int | None = None
    for line in reversed(lines):
        key = _column_of_key(line)
        begins = len(line) - len(line.lstrip(" "))
        if key is None or (lowest is not None and begins >= lowest):
            continue
        if not dashes:
            yield key
        elif line[begins] == "-":
            yield begins
        lowest = begins
