"""Templates: one Jinja2 file, many datasets.

A `*.yaml.j2` file may begin with a document that holds a `matrix`; what follows is rendered once
for each combination of its values. `${{ … }}` belongs to fetch time and passes through untouched.
Rendering depends on the project's files only: no clock, no randomness, no environment.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from odfbuild.errors import Errors, Location, ProjectError
from odfbuild.limits import FILE_BYTES, INSTANCES, RENDERED_BYTES
from odfbuild.project.bounded import bounded, too_much
from odfbuild.project.unsaved import unsaved_below, unsaved_texts
from odfbuild.project.yaml.source import locate, read_documents
from odfbuild.sql.dbt_words import INSTEAD_OF_DBT
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

# Each blank line matches in one way only: else so many of them take time that doubles with each.
_FRONT = re.compile(
    r"\A(?:[^\S\n]*(?:#[^\n]*)?\n)*(?:---[^\n]*\n)?"
    r"((?:matrix|include|exclude)\s*:.*?\n)---[ \t]*\n",
    re.S,
)
_FRONT_KEYS = ("matrix", "include", "exclude")
_RANDOM_FILTERS = ("random",)


class Rendered(Value):
    """YAML text of one instance.

    `label` names its values (`origin=EWR`), `lines` gives the template's line of each line. `query`
    is the text of the template beside it with the same values, and the lines of that.
    """

    text: str
    label: str | None
    lines: tuple[int, ...]
    query: tuple[str, tuple[int, ...]] | None = None


def _any_file(path: str) -> None:
    """Every file may be opened."""


def render_template(
    text: str,
    file: str,
    root: Path,
    variables: Mapping[str, Any],
    check_open: Callable[[str], None] = _any_file,
    query: tuple[str, str] | None = None,
) -> list[Rendered]:
    """All instances of a template; raises `ProjectError` (or several in `Errors`).

    `check_open` raises for a file to include that must not be opened. `query` is the name and the
    text of the template of the query, where that is a file of its own. Rendering runs in a process
    of its own, within the bounds of `limits` (E0126).
    """
    unsaved = _shared_unsaved(root)
    return bounded(_render_all, file, text, file, root, variables, check_open, query, unsaved)


def _shared_unsaved(root: Path) -> dict[str, str]:
    """Files that templates may include, as an editor holds them."""
    paths = (path for each in ("macros", "templates") for path in unsaved_below(root / each))
    return {path: unsaved_texts()[path] for path in paths}


def _render_all(
    text: str,
    file: str,
    root: Path,
    variables: Mapping[str, Any],
    check_open: Callable[[str], None],
    query: tuple[str, str] | None,
    unsaved: Mapping[str, str],
) -> list[Rendered]:
    environment = _environment(root, check_open, unsaved)
    front, body, skipped = _split(text)
    instances = _instances(front, file, environment, variables)
    rendered, errors, size = [], [], 0
    for instance in instances:
        label = ", ".join(f"{key}={value}" for key, value in instance.items()) or None
        try:
            values = {**variables, **instance}
            output = _render(environment, body, file, values, skipped)
            sql = "" if query is None else _render(environment, query[1], query[0], values, 0)
        except ProjectError as error:
            errors.append(error)
            continue
        largest = max(len(output), len(sql))
        size += len(output) + len(sql)
        if largest > FILE_BYTES or size > RENDERED_BYTES:
            raise too_much(file, f"it renders more than {_mib(largest > FILE_BYTES)}")
        lines = tuple(line + skipped for line in _line_map(body, output))
        beside = None if query is None else (sql, tuple(_line_map(query[1], sql)))
        rendered.append(Rendered(output, label, lines, beside))
    if errors:
        # The same mistake shows in every instance: report each place once.
        raise Errors({(str(e.location), e.message): e for e in errors}.values())
    return rendered


def _environment(root: Path, check_open: Callable[[str], None], unsaved: Mapping[str, str]) -> Any:
    from jinja2 import StrictUndefined
    from jinja2.loaders import FileSystemLoader
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Within(FileSystemLoader):
        def get_source(self, environment: Any, template: str) -> Any:
            for folder in self.searchpath:
                path = f"{folder}/{template}"
                check_open(path)
                if path in unsaved:
                    return unsaved[path], path, lambda: True
            return super().get_source(environment, template)

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        loader=Within([root / "macros", root / "templates"]),
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    for name in _RANDOM_FILTERS:
        del environment.filters[name]
    for name in ("lipsum", "cycler", "joiner", "namespace"):
        environment.globals.pop(name, None)
    return environment


def _split(text: str) -> tuple[str | None, str, int]:
    match = _FRONT.match(text)
    if match is None:
        return None, text, 0
    return text[: match.end(1)], text[match.end() :], text[: match.end()].count("\n")


def _instances(
    front: str | None, file: str, environment: Any, variables: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if front is None:
        return [{}]
    rendered = _render(environment, front, file, variables, 0)
    documents = read_documents(rendered, file)
    data = documents[0] if documents else {}
    for key in data:
        if key not in _FRONT_KEYS:
            raise ProjectError(
                f"unknown key '{key}' in front of the template",
                code="E0104",
                location=locate(rendered, file, 0, (key,)),
                help=did_you_mean(key, _FRONT_KEYS, "use matrix, include, exclude"),
            )
    matrix = data.get("matrix") or {}
    if not isinstance(matrix, dict) or not all(isinstance(v, list) for v in matrix.values()):
        raise ProjectError(
            "`matrix` must give a list of values for each name",
            code="E0120",
            location=locate(rendered, file, 0, ("matrix",)),
            help="for example `matrix: {city: [kyiv, lisbon]}`",
        )
    combinations = math.prod(map(len, matrix.values()))
    if combinations > INSTANCES:
        raise too_much(
            file, f"its matrix has {combinations:,} combinations; {INSTANCES:,} are allowed"
        )
    product = [
        dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())
    ]
    excluded = data.get("exclude") or []
    kept = [i for i in product if not any(e.items() <= i.items() for e in excluded)]
    kept = kept if matrix else []
    return kept + list(data.get("include") or [])


def _render(
    environment: Any,
    body: str,
    file: str,
    values: Mapping[str, Any],
    skipped: int,
) -> str:
    from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError

    try:
        return str(_compiled(environment, body).render(values))
    except ProjectError as error:  # of a file to include
        raise error.or_at(Location(file)) from None
    except UndefinedError as error:
        raise _undefined(error, body, file, values, skipped) from None
    except TemplateNotFound as error:
        raise ProjectError(
            f"there is no template file '{error.name}'",
            code="E0122",
            location=_line(body, file, _error_line(error), skipped),
            help="files for include and import must be in macros/ or templates/",
        ) from None
    except TemplateSyntaxError as error:
        message = str(error.message or error)
        code, help_ = "E0123", "check the {{ … }} and {% … %} on this line"
        if "No filter named" in message:
            code, help_ = "E0124", "only deterministic filters are available"
        raise ProjectError(
            f"the template is wrong: {message.rstrip('.')}",
            code=code,
            location=_line(body, file, error.lineno, skipped),
            help=help_,
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # an expression may fail as any program may
        raise ProjectError(
            f"the template cannot be rendered: {error}",
            code="E0125",
            location=_line(body, file, _error_line(error), skipped),
            help="check the expression on this line",
        ) from None


@lru_cache(2)
def _compiled(environment: Any, body: str) -> Any:
    """Compiled once for all instances, of which each then takes a fraction of that time."""
    return environment.from_string("".join(_guarded(body)))


def _guarded(body: str) -> Iterator[str]:
    """The text with `${{ … }}` as text that Jinja passes on.

    The plus signs keep the blanks before and the line break after the expression.
    """
    done = 0
    while (start := body.find("${{", done)) >= 0 and (end := body.find("}}", start)) >= 0:
        yield body[done:start]
        yield "{%+ raw %}" + body[start : end + 2] + "{% endraw +%}"
        done = end + 2
    yield body[done:]


def _mib(one: bool) -> str:
    return f"{(FILE_BYTES if one else RENDERED_BYTES) >> 20} MiB"


def _undefined(
    error: Exception, body: str, file: str, values: Mapping[str, Any], skipped: int
) -> ProjectError:
    match = re.search(r"'([^']+)'", str(error))
    name = match.group(1) if match else "?"
    known = sorted(str(key) for key in values)
    return ProjectError(
        f"'{name}' is not defined",
        code="E0121",
        location=_line(body, file, _error_line(error), skipped, name),
        notes=(f"defined here: {', '.join(known) or 'none'}",),
        help=INSTEAD_OF_DBT.get(name)
        or did_you_mean(
            name, known, f"add '{name}' to the matrix of this file or to `vars` in odfbuild.yaml"
        ),
    )


def _error_line(error: BaseException) -> int | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _line(
    body: str, file: str, line: int | None, skipped: int, word: str | None = None
) -> Location:
    if line is None:
        return Location(file)
    lines = body.splitlines()
    snippet = lines[line - 1] if 0 < line <= len(lines) else None
    column = snippet.find(word) + 1 if snippet and word and word in snippet else 1
    return Location(file, line + skipped, column, snippet, len(word) if word else 1)


def _line_map(template: str, output: str) -> list[int]:
    """For each line of the output the line (from 1) of the template that most likely made it."""
    source, made = template.splitlines(), output.splitlines()
    # What both begin with needs no comparison of each line with each.
    same = next(
        (n for n, (one, other) in enumerate(zip(source, made, strict=False)) if one != other),
        min(len(source), len(made)),
    )
    lines = [*range(1, same + 1), *[0] * (len(made) - same)]
    matcher = SequenceMatcher(None, source[same:], made[same:], autojunk=False)
    for _, a0, a1, b0, b1 in matcher.get_opcodes():
        for offset in range(b1 - b0):
            lines[same + b0 + offset] = same + min(a0 + offset, max(a0, a1 - 1)) + 1
    return lines
