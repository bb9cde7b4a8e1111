"""Render queries of dbt in a sandbox, as dbt would for an empty warehouse.

Known are `ref`, `source`, `var`, `config`, `is_incremental` (false) and the project's own macros.
What asks the database, the environment or another package is an error with its place: its result
is not guessed. Rendering runs in a process within the bounds of `limits`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from odfbuild.errors import ProjectError
from odfbuild.exchange.dbt.model import MARKER, Note, Place, Query
from odfbuild.limits import FILE_BYTES
from odfbuild.project.bounded import bounded
from odfbuild.values import Value

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(.*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)
COMPILE = "`dbt compile` resolves it, and its manifest is read"
_ASKS = {
    **dict.fromkeys(
        ("run_query", "execute", "load_result", "statement"), f"asks the database: {COMPILE}"
    ),
    "env_var": f"reads the environment: {COMPILE}",
    "this": "reads its own table, which no query can",
    **dict.fromkeys(("graph", "model"), f"reads the graph of dbt: {COMPILE}"),
    **dict.fromkeys(("invocation_id", "run_started_at"), "differs with each run: leave it out"),
    "modules": f"calls Python: {COMPILE}",
    "dbt": f"depends on the database: {COMPILE}",
    "exceptions": "stops the rendering",
}
"""What names of dbt's context do that cannot be done here."""


class Macro(Value):
    """The text of a macro, and where it stands."""

    text: str
    place: Place


class Context(Value, kw_only=True):
    """What queries of one project can use; `tables` are ids by what `ref` and `source` take."""

    adapter: str
    macros: Mapping[str, Macro]
    variables: Mapping[str, Any]
    tables: Mapping[tuple[str, ...], str]


class Rendered(Value):
    """A query and its `config(…)`, or why there is no query."""

    query: Query | None
    config: Mapping[str, Any]
    problem: Note | None = None


def macros_in(text: str, file: str) -> dict[str, Macro]:
    """The macros of a file by name, without tests and materializations."""
    return {
        found[1]: Macro(found[0], Place(file, text.count("\n", 0, found.start()) + 1))
        for found in _MACRO.finditer(text)
    }


def render(text: str, place: Place, context: Context) -> Rendered:
    """Render the query of a model; never raises for what is wrong with its text."""
    try:
        sql, inputs, config, why = bounded(_render, place.file, text, context)
    except ProjectError as error:
        return Rendered(None, {}, Note(error.message, place))
    first = place.line or 1
    if why is not None:
        line = first - 1 + _line_of(text, why)
        return Rendered(None, config, Note(why[1], Place(place.file, line)))
    notes: tuple[Note, ...] = ()
    if "is_incremental" in text:
        line = first + text[: text.index("is_incremental")].count("\n")
        said = "the `is_incremental()` block is left out: odfbuild finds new records itself"
        notes = (Note(said, Place(place.file, line)),)
    return Rendered(Query(sql, inputs, notes), config)


def render_value(value: Any, context: Context) -> Any:
    """A setting in YAML, whose texts may be templates; as it is where it cannot be rendered."""
    if not isinstance(value, str) or "{{" not in value:
        return value
    rendered = render(value, Place("dbt_project.yml"), context)
    text = rendered.query.sql if rendered.query else value
    return {"true": True, "false": False}.get(text.strip().lower(), text)


_Why = tuple[str, str, int | None]
"""A word of the text, what is wrong with it, and its line if that is known."""


def _line_of(text: str, why: _Why) -> int:
    word, _, line = why
    if line is not None:
        return line
    found = re.search(rf"\b{re.escape(word)}\b", text) if word else None
    return text.count("\n", 0, found.start()) + 1 if found else 1


# --- In the other process ---


class _Refused(Exception):
    """A name of dbt that cannot be used here, and why."""


class _Returned(Exception):
    """`return(…)` in a macro."""


def _render(
    text: str, context: Context
) -> tuple[str, tuple[str, ...], dict[str, Any], _Why | None]:
    from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, extensions=["jinja2.ext.do"], autoescape=False
    )
    for name in ("as_bool", "as_number", "as_native", "as_text"):
        environment.filters[name] = lambda value: value
    environment.filters.pop("random")
    for name in ("lipsum", "cycler", "joiner"):
        environment.globals.pop(name)
    inputs: list[str] = []
    config: dict[str, Any] = {}
    names = _names(environment, context, inputs, config)
    try:
        output = environment.from_string(text, globals=names).render()
    except TemplateSyntaxError as error:
        return (
            "",
            (),
            config,
            ("", f"this is not understood as Jinja: {error.message}", error.lineno),
        )
    except _Refused as error:
        return "", (), config, (error.args[0], error.args[1], None)
    except TemplateError as error:
        found = re.match(r"'([\w.]+)' is undefined", error.message or "")
        name = found[1] if found else ""
        why = f"`{name}` is no macro of this project" if name else str(error.message)
        if name.startswith("dbt_"):
            why = f"`{name}` is a package: {COMPILE}"
        return "", (), config, (name, why, None)
    except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError) as error:
        return "", (), config, ("", f"this cannot be rendered: {error}", None)
    if len(output) > FILE_BYTES:
        return "", (), config, ("", f"it renders more than {FILE_BYTES >> 20} MiB", None)
    return output, tuple(inputs), config, None


def _names(
    environment: Any, context: Context, inputs: list[str], config: dict[str, Any]
) -> dict[str, Any]:
    """What templates can call; reads are added to `inputs`, settings to `config`."""

    def table(*path: str) -> str:
        found = context.tables.get(path)
        if found is None:
            what = "source" if path[0] == "source" else "ref"
            raise _Refused(path[-1], f"{what}({', '.join(map(repr, path[1:]))}) is not there")
        if found not in inputs:
            inputs.append(found)
        return MARKER.format(inputs.index(found))

    def ref(*path: str, **version: Any) -> str:
        version_of = version.get("version", version.get("v"))
        name = path[-1] if version_of is None else f"{path[-1]}.v{version_of}"
        return table("ref", name)

    def var(name: str, default: Any = _Refused) -> Any:
        if name in context.variables:
            return context.variables[name]
        if default is _Refused:
            raise _Refused(name, f"the variable `{name}` has no value: give it with --var {name}=…")
        return default

    def settings(*given: Mapping[str, Any], **named: Any) -> str:
        for each in given:
            config.update(each)
        config.update(named)
        return ""

    def give_back(value: Any = "") -> None:
        raise _Returned(value)

    names: dict[str, Any] = {
        "ref": ref,
        "source": lambda *path: table("source", *path),
        "var": var,
        "config": settings,
        "is_incremental": lambda: False,
        "return": give_back,
        "log": lambda *said, **how: "",
        "target": _Target(context.adapter),
        "project_name": "",
        "adapter": _Adapter(context.adapter, context.macros, lambda name: names[name]),
    }
    for name, why in _ASKS.items():
        names.setdefault(name, _Asks(name, why))
    for name, macro in context.macros.items():
        names[name] = _macro(environment, names, name, macro.text)
    return names


def _macro(environment: Any, names: Mapping[str, Any], name: str, text: str) -> Callable[..., Any]:
    """A macro that is compiled when it is called, since most queries use none."""

    def call(*values: Any, **named: Any) -> Any:
        module = environment.from_string(text, globals=names).module
        try:
            return getattr(module, name)(*values, **named)
        except _Returned as returned:
            return returned.args[0]

    return call


class _Asks:
    """A name whose every use is refused."""

    def __init__(self, name: str, why: str) -> None:
        self._said = (name, f"`{name}` {why}")

    def _refuse(self, *values: Any, **named: Any) -> Any:
        raise _Refused(*self._said)

    # The sandbox looks at attributes of callables before it calls them: these are of the class.
    unsafe_callable = alters_data = False
    __call__ = __str__ = __bool__ = __iter__ = __getitem__ = __len__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("jinja_pass_arg", "contextfunction"):
            raise AttributeError(name)
        raise _Refused(*self._said)


class _Target:
    """Of a profile only its type is known."""

    def __init__(self, adapter: str) -> None:
        self.type = adapter

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _Refused("target", f"`target.{name}` is in a profile: {COMPILE}")


class _Adapter:
    """Only `dispatch` is known: the macro of the project for this database, or its default."""

    def __init__(
        self, adapter: str, macros: Mapping[str, Macro], find: Callable[[str], Any]
    ) -> None:
        def dispatch(macro_name: str, macro_namespace: Any = None) -> Any:
            for prefix in (adapter, "default"):
                if f"{prefix}__{macro_name}" in macros:
                    return find(f"{prefix}__{macro_name}")
            raise _Refused("adapter", f"`{macro_name}` is no macro of this project")

        self.dispatch = dispatch

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _Refused("adapter", f"`adapter.{name}` asks the database: {COMPILE}")
