"""YAML text to plain data, and from a place in the data back to the place in the text.

Scalars follow the core schema of YAML 1.2: `yes` and `on` are strings, keys may not repeat.
Source: YAML 1.2.2, 10.3.2 "Tag Resolution".
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from odfbuild.errors import Location, ProjectError
from odfbuild.limits import ALIASED_VALUES, DEPTH, VALUES
from odfbuild.project.yaml.broken import Stop, mistake_in
from odfbuild.project.yaml.scalars import offsets_of

Path = tuple[str | int, ...]

STR, MAP, SEQ = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))

_TAGS: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
"""Tags other than text, with what they look like, by first letter."""

for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    # Longer numbers fit nowhere: they stay text, and are refused where a number is meant.
    ("int", r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
):
    for _letter in _first:
        _TAGS.setdefault(_letter, []).append(
            (f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"))
        )


@lru_cache(8192)
def tag_of(value: str) -> str:
    """The tag of a plain scalar without one: half of those of a project are the same few keys."""
    for tag, pattern in _TAGS.get(value[:1], ()):
        if pattern.match(value):
            return tag
    return STR


def _integer(value: str) -> int:
    return int(value, 0) if value[:2] in ("0o", "0x") else int(value)


def _float(value: str) -> float:
    return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))


SCALARS: dict[str, Callable[[str], Any]] = {
    STR: str,
    "tag:yaml.org,2002:bool": lambda value: value.lower() == "true",
    "tag:yaml.org,2002:null": lambda value: None,
    "tag:yaml.org,2002:int": _integer,
    "tag:yaml.org,2002:float": _float,
}
"""The value of a scalar with a tag."""


class _TooMany(Exception):
    """A text holds more values than one may."""


@cache
def _loader(*, bounded: bool) -> Any:
    """The class that composes nodes, made when it is needed: PyYAML takes long to import."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        # What follows says what the base class says, without its paths, which are not used, and
        # with the scalars of YAML 1.2's core schema.

        def resolve(self, kind: type[Any], value: str | None, implicit: Any) -> str:
            if kind is not yaml.ScalarNode:
                return SEQ if kind is yaml.SequenceNode else MAP
            return tag_of(value or "") if implicit[0] else STR

        # It is told of each step into a value and out of one, which takes nothing here.
        descend_resolver: Any = operator.is_
        ascend_resolver: Any = bool

    class Bounded(Loader):
        # libyaml composes by recursion in C, and some ten thousand brackets would end the process.
        depth = 0
        values = 0

        def descend_resolver(self, current_node: Any, current_index: Any) -> None:
            self.depth += 1
            self.values += 1
            if self.values > VALUES:
                raise _TooMany
            if self.depth > DEPTH + 2:  # `construct` knows the place of what is barely too deep
                raise RecursionError

        def ascend_resolver(self) -> None:
            self.depth -= 1

    return Bounded if bounded else Loader


_INDENTED = {columns: re.compile(rf"^[ ?:-]{{{columns}}}", re.MULTILINE) for columns in (12, 24)}


def _is_small(text: str) -> bool:
    """Whether a text cannot reach the bounds, so that nobody has to count: most files are small.

    A block is indented deeper than the one around it, but for a list in a mapping, so that two
    begin in a column at most; what stands in brackets needs one for each level. A value takes a
    character.
    """
    brackets = text.count("[") + text.count("{")
    return len(text) < VALUES // 2 and any(
        brackets + 2 * columns <= DEPTH and not begin.search(text)
        for columns, begin in _INDENTED.items()
    )


def read_documents(text: str, file: str) -> list[Any]:
    """Plain data of all documents; raises `ProjectError` with the place of broken YAML."""
    try:
        nodes = compose(text, file)
        if "&" in text and "*" in text:
            _check_aliases(nodes, text, file)
        return [construct(node, text, file) for node in nodes]
    except RecursionError:  # an alias within its own value
        raise _too_deep(Location(file)) from None


# Each of many mistakes in one text asks for its place.
@lru_cache(1)
def compose(text: str, file: str) -> tuple[Any, ...]:
    """The nodes of all documents, with their marks; errors as `read_documents`.

    Nobody changes them.
    """
    import yaml

    loader = _loader(bounded=not _is_small(text))(text)
    try:
        nodes = []
        while loader.check_node():
            nodes.append(loader.get_node())
        return tuple([node for node in nodes if node is not None])
    except _TooMany:
        raise ProjectError(
            f"this text holds more than {VALUES:,} values",
            code="E0101",
            location=Location(file),
            help="divide it among several files",
        ) from None
    except RecursionError:
        mark = loader.peek_event().start_mark
        raise _too_deep(_place(text, file, mark.line + 1, mark.column + 1)) from None
    except yaml.MarkedYAMLError as error:
        raise _broken(text, file, error) from None
    except yaml.YAMLError as error:
        raise ProjectError(
            f"this is not YAML: {error}", code="E0101", location=Location(file)
        ) from None
    finally:
        loader.dispose()


def _broken(text: str, file: str, error: Any) -> ProjectError:
    """The error for a text that a parser refused."""
    mark, since = error.problem_mark or error.context_mark, error.context_mark
    problem = str(error.problem or error.context)
    if mark is None:
        return ProjectError(f"this is not YAML: {problem}", code="E0101", location=Location(file))
    stop = Stop(problem, (mark.line, mark.column), since and (since.line, since.column))
    found = mistake_in(text, stop)
    if found is not None:
        return ProjectError(
            f"this is not YAML: {found.message}",
            code="E0101",
            location=_place(text, file, found.line + 1, found.column + 1, found.length),
            help=found.help,
        )
    # A parser that misses something at the end of a text has no line to show.
    line = min(mark.line, len(text.splitlines()) - 1)
    column = mark.column if line == mark.line else 0
    return ProjectError(
        f"this is not YAML: {problem}",
        code="E0101",
        location=_place(text, file, line + 1, column + 1),
        notes=(error.context,) if error.context and error.problem else (),
        help="check indentation, quotes and brackets on this line and the one above",
    )


def _too_deep(place: Location) -> ProjectError:
    return ProjectError(
        f"values are nested more than {DEPTH} deep",
        code="E0101",
        location=place,
        help="no object of the protocol needs that: flatten it",
    )


def _check_aliases(nodes: Sequence[Any], text: str, file: str) -> None:
    """Refuse a text whose aliases (`*name`), written out, are more than any definition needs."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        known = sizes.get(id(node))
        if known is None:
            parts = node.value if node.tag in (MAP, SEQ) else ()
            flat = itertools.chain.from_iterable(parts) if node.tag == MAP else parts
            known = sizes[id(node)] = 1 + sum(map(size, flat))
        if known > ALIASED_VALUES:
            raise ProjectError(
                f"with its aliases expanded this has more than {ALIASED_VALUES} values",
                code="E0101",
                location=_mark(text, file, node),
                help="write the values out, with fewer aliases",
            )
        return known

    for node in nodes:
        size(node)


def construct(node: Any, text: str, file: str, depth: int = 0) -> Any:
    """Plain data of a node, which lies `depth` levels below its document."""
    if depth > DEPTH:
        raise _too_deep(_mark(text, file, node))
    tag = node.tag
    if tag == MAP:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = construct(key_node, text, file, depth + 1)
            if not isinstance(key, str):
                key = str(key_node.value)
            if key in data:
                raise ProjectError(
                    f"key '{key}' occurs twice",
                    code="E0102",
                    location=_mark(text, file, key_node, len(key)),
                    help="remove one of the two",
                )
            data[key] = construct(value_node, text, file, depth + 1)
        return data
    if tag == SEQ:
        return [construct(item, text, file, depth + 1) for item in node.value]
    if tag in SCALARS:
        return SCALARS[tag](node.value)
    raise ProjectError(
        f"the tag {tag} is not supported",
        code="E0101",
        location=_mark(text, file, node),
        help="remove the tag",
    )


def has(text: str, file: str, document: int, path: Sequence[str | int]) -> bool:
    """Whether a document has a value at `path`."""
    return _follow(text, file, document, path) is not None


def locate(text: str, file: str, document: int, path: Sequence[str | int]) -> Location:
    """The place of a value in a document: of its key, or of the nearest one above it."""
    node = _document(text, file, document)
    if node is None:
        return Location(file)
    found, length = node, 1
    for part in path:
        step = _step(node, part)
        if step is None:
            break
        mark_node, node = step
        found, length = mark_node, max(1, len(str(part))) if isinstance(part, str) else 1
    return _mark(text, file, found, length)


def locate_value(text: str, file: str, document: int, path: Sequence[str | int]) -> Location:
    """As `locate`, but of the value itself."""
    node = _follow(text, file, document, path)
    if node is None:
        return locate(text, file, document, path)
    length = len(node.value) if isinstance(node.value, str) and "\n" not in node.value else 1
    return _mark(text, file, node, max(1, length))


def locate_in_scalar(
    text: str, file: str, document: int, path: Sequence[str | int], line: int, column: int
) -> Location | None:
    """The place of line and column (from 1) of a text value; `None`: there is no such value."""
    node = _follow(text, file, document, path)
    if node is None or not isinstance(node.value, str):
        return None
    within = node.value.split("\n")[: max(line, 1)]
    at = sum(len(each) + 1 for each in within[:-1]) + min(column - 1, len(within[-1]))
    index = offsets_of(text, node)[min(at, len(node.value))]
    start = text.rfind("\n", 0, index) + 1
    return _place(text, file, text.count("\n", 0, index) + 1, index - start + 1)


def _follow(text: str, file: str, document: int, path: Sequence[str | int]) -> Any:
    node = _document(text, file, document)
    for part in path:
        step = _step(node, part) if node is not None else None
        if step is None:
            return None
        node = step[1]
    return node


def _document(text: str, file: str, document: int) -> Any:
    nodes = compose(text, file)
    return nodes[document] if document < len(nodes) else None


def _step(node: Any, part: str | int) -> tuple[Any, Any] | None:
    if isinstance(part, int) and node.tag == SEQ and part < len(node.value):
        item = node.value[part]
        return item, item
    if isinstance(part, str) and node.tag == MAP:
        for key_node, value_node in node.value:
            if key_node.value == part:
                return key_node, value_node
    return None


def _mark(text: str, file: str, node: Any, length: int = 1) -> Location:
    mark = node.start_mark
    return _place(text, file, mark.line + 1, mark.column + 1, length)


def _place(text: str, file: str, line: int | None, column: int | None, length: int = 1) -> Location:
    lines = _lines(text)
    snippet = lines[line - 1] if line is not None and 0 < line <= len(lines) else None
    return Location(file, line, column, snippet, length)


@lru_cache(1)
def _lines(text: str) -> list[str]:
    return text.splitlines()
