"""Rules about files: what they are called, and how values are spelled in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from odfbuild.project.lint.finding import Flaw
from odfbuild.project.model import Definition
from odfbuild.project.source import TEMPLATE_SUFFIX
from odfbuild.project.yaml.source import compose
from odfbuild.project.yaml.version_1_1 import other_meaning
from odfbuild.values import Value


class AmbiguousText(Value):
    """Plain text at line and column (from 1) of a file, and what YAML 1.1 takes it for."""

    text: str
    meaning: str
    line: int
    column: int


def flaws_of_file(definitions: Sequence[Definition]) -> Iterator[Flaw]:
    """Whether a file with one dataset is called like it; `definitions` are all of the file."""
    first = definitions[0]
    if len(definitions) > 1 or first.instance is not None:
        return
    path = PurePath(first.file)
    suffix = TEMPLATE_SUFFIX if path.name.endswith(TEMPLATE_SUFFIX) else path.suffix
    name = first.name.rpartition("/")[2]
    if path.name.removesuffix(suffix) != name:
        yield Flaw(
            "file-name",
            f"the file is called '{path.name}', the dataset '{name}'",
            f"git mv {path} {path.with_name(name + suffix)}",
            ("name",),
            length=len(name),
        )


def ambiguous_texts(text: str, file: str) -> Iterator[AmbiguousText]:
    """Plain values of a file that are text here and something else to readers of YAML 1.1."""
    for node in compose(text, file):
        yield from _ambiguous(node)


def _ambiguous(node: Any) -> Iterator[AmbiguousText]:
    if isinstance(node.value, str):
        meaning = None
        if node.style not in ("'", '"', "|", ">") and node.tag.endswith(":str"):
            meaning = other_meaning(node.value)
        if meaning is not None:
            mark = node.start_mark
            yield AmbiguousText(node.value, meaning, mark.line + 1, mark.column + 1)
        return
    for each in node.value:
        # Keys are those of the specification, which has none of these.
        yield from _ambiguous(each[1] if isinstance(each, tuple) else each)


def quoted(text: str, found: Sequence[AmbiguousText]) -> str:
    """The text with quotes around each of the values that were found in it."""
    lines = text.split("\n")
    for each in sorted(found, key=lambda one: (one.line, one.column), reverse=True):
        line, start = lines[each.line - 1], each.column - 1
        end = start + len(each.text)
        if line[start:end] == each.text:
            lines[each.line - 1] = f'{line[:start]}"{each.text}"{line[end:]}'
    return "\n".join(lines)
