"""The names in the expressions and statements of a template, with their places. Pure.

Jinja itself reads the text: its lexer says where a name stands, its parser what it gives a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from odfbuild.values import Value

_FETCHED = re.compile(r"\$\{\{.*?\}\}", re.S)
_SHARED = ("macros/", "templates/")


class Use(Value):
    """A word in Jinja's part of a text: a name, or what stands behind a dot (`owner` before it)."""

    name: str
    start: int
    end: int
    owner: str | None = None


class TemplateNames(Value):
    """What a template names.

    `bound` are names that the text itself gives a value: by `set`, `for`, parameters. `macros` are
    those that it defines, `imported` the names from a file by `from`, `modules` the files by what
    `import` calls them. `includes` says that another file sees its names.
    """

    uses: tuple[Use, ...]
    bound: frozenset[str]
    macros: frozenset[str]
    imported: tuple[tuple[str, str], ...]
    modules: tuple[tuple[str, str], ...]
    includes: bool

    def named(self, name: str) -> Iterator[Use]:
        """Where a name stands, without what has an owner."""
        return (each for each in self.uses if each.owner is None and each.name == name)

    def takes_macro(self, file: str, name: str) -> bool:
        """Whether it imports a macro of a file in `macros/` or `templates/`, under its name."""
        return any(_is_file(each, file) and of == name for each, of in self.imported)

    def through_module(self, file: str, name: str) -> Iterator[Use]:
        """Where a macro stands behind the name of an imported file."""
        called = {alias for each, alias in self.modules if _is_file(each, file)}
        return (each for each in self.uses if each.owner in called and each.name == name)


def _is_file(name: str, file: str) -> bool:
    """Whether a template calls a file of the project so."""
    return file in {f"{folder}{name}" for folder in _SHARED}


@lru_cache(256)
def template_names(text: str) -> TemplateNames | None:
    """The names in a template; `None` where Jinja does not understand it."""
    from jinja2 import Environment, TemplateSyntaxError, nodes

    environment = Environment(keep_trailing_newline=True, autoescape=False)
    text = _FETCHED.sub(lambda found: " " * len(found.group()), text)
    try:
        tree = environment.parse(text)
        uses = tuple(_uses(environment, text))
    except (TemplateSyntaxError, RecursionError):
        return None
    bound = {each.name for each in tree.find_all(nodes.Name) if each.ctx in ("store", "param")}
    imports, modules = [*tree.find_all(nodes.FromImport)], [*tree.find_all(nodes.Import)]
    return TemplateNames(
        uses,
        frozenset(bound),
        frozenset(each.name for each in tree.find_all(nodes.Macro)),
        tuple(
            (_constant(each.template), one if isinstance(one, str) else one[0])
            for each in imports
            for one in each.names
        ),
        tuple((_constant(each.template), each.target) for each in modules),
        tree.find(nodes.Include) is not None
        or any(each.with_context for each in imports)
        or any(each.with_context for each in modules),
    )


def _constant(template: Any) -> str:
    return str(getattr(template, "value", ""))


_BLANK = ("whitespace", "data", "comment", "raw_begin", "raw_end")


def _uses(environment: Any, text: str) -> Iterator[Use]:
    words: list[tuple[tuple[str, str], int]] = [(("", ""), 0)] * 2
    at = 0
    for _, kind, value in environment.lex(text):
        at = text.index(value, at)  # blanks that `-` removes are no tokens
        if kind not in _BLANK:
            words.append(((kind, value), at))
        at += len(value)
    words.append((("", ""), at))
    for number, (word, start) in enumerate(words):
        if word[0] != "name":
            continue
        end = start + len(word[1])
        before, after = words[number - 1][0], words[number + 1][0]
        if before == ("operator", "."):
            kind, owner = words[number - 2][0]
            yield Use(word[1], start, end, owner if kind == "name" else "")
        elif before in (("operator", "|"), ("name", "is")):
            continue  # a filter or a test
        elif after == ("operator", "=") and before in (("operator", "("), ("operator", ",")):
            continue  # the name of an argument
        else:
            yield Use(word[1], start, end)
