"""Which datasets a command is about: dbt's selection grammar over a graph of datasets.

    expression    criterion[,criterion...] [more...]      comma: both; space or repetition: any
    criterion     [@][[N]+][method:]value[+[N]]           +: ancestors or readers, N steps of them

`@x` is x, everything that reads it, and all that those readers need. A value may hold `*` and `?`;
case does not count. Without a method a value is the name of a dataset, or a path when it ends like
a definition file. Source: dbt, "Node selection syntax".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase

from odfbuild.errors import GraphError
from odfbuild.plan.graph.dag import dag_of, reach
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

EXIT_USAGE = 64

_CRITERION = re.compile(
    r"(?P<at>@)?(?:(?P<up>\d*)\+)?(?:(?P<method>[a-z]+):)?(?P<value>[^+@:]*(?::[^+@]*)?)"
    r"(?:\+(?P<down>\d*))?"
)
_FILES = (".yaml", ".yml", ".yaml.j2")

Matcher = Callable[[str], Collection[str]]
"""From the value of a criterion to the names of the datasets that it means."""


class Selection(Value, kw_only=True):
    """What was asked for; nothing asked for means everything."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude)


class Selectable(Value, kw_only=True):
    """What can be selected: the `names` of all datasets, what each reads, and the methods.

    `selectors` are the named expressions of the project, for `selector:NAME`. `resolve` gives the
    name of the dataset that a reference means, such as `did:odf:…`, or an address; `None`: no one.
    """

    names: Collection[str]
    inputs: Mapping[str, Sequence[str]]
    methods: Mapping[str, Matcher]
    selectors: Mapping[str, str] = field(default_factory=dict)
    resolve: Callable[[str], str | None] = lambda _: None


def select(catalogue: Selectable, selection: Selection) -> frozenset[str]:
    """Names of the selected datasets; raises `GraphError` for what cannot be understood."""
    chosen = _any_of(catalogue, selection.select, ()) if selection.select else set(catalogue.names)
    return frozenset(chosen - _any_of(catalogue, selection.exclude, ()))


def labelled(
    method: str, labels: Mapping[str, Iterable[str]], known: Sequence[str] | None = None
) -> Matcher:
    """A method that compares values with labels, given by dataset.

    With `known`, the closed list of labels that exist, a label that no dataset has selects nothing;
    otherwise a value that matches nothing is a mistake.
    """
    datasets: dict[str, list[str]] = {label: [] for label in known or ()}
    for name, own in labels.items():
        for label in own:
            datasets.setdefault(label, []).append(name)

    def match(value: str) -> Collection[str]:
        pattern = value.lower()
        found = [d for d in datasets if d.lower() == pattern or fnmatchcase(d.lower(), pattern)]
        if not found:
            raise _no_match(method, value, known or sorted(datasets), closed=known is not None)
        return {name for label in found for name in datasets[label]}

    return match


def _any_of(catalogue: Selectable, expressions: Iterable[str], open_: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for expression in expressions:
        for part in expression.split():
            found |= _all_of(catalogue, part, open_)
    return found


def _all_of(catalogue: Selectable, part: str, open_: tuple[str, ...]) -> set[str]:
    found: set[str] | None = None
    for criterion in part.split(","):
        matching = _criterion(catalogue, criterion, part, open_)
        found = matching if found is None else found & matching
    return found or set()


def _criterion(catalogue: Selectable, text: str, part: str, open_: tuple[str, ...]) -> set[str]:
    match = _CRITERION.fullmatch(text)
    if match is None or not match["value"] or (match["at"] and match["down"] is not None):
        raise _malformed(text, part)
    found = set(_matching(catalogue, match["method"], match["value"], open_))
    if not match["at"] and match["up"] is None and match["down"] is None:
        return found & set(catalogue.names)
    readers = dag_of(catalogue.inputs)
    inputs = readers.reverse(copy=False)
    if match["at"]:
        result = reach(inputs, reach(readers, found, None), None)
    else:
        up = reach(inputs, found, _steps(match["up"])) if match["up"] is not None else set()
        down = reach(readers, found, _steps(match["down"])) if match["down"] is not None else set()
        result = found | up | down
    return result & set(catalogue.names)


def _steps(text: str) -> int | None:
    return int(text) if text else None


def _matching(
    catalogue: Selectable, method: str | None, value: str, open_: tuple[str, ...]
) -> Collection[str]:
    if method == "selector":
        return _named(catalogue, value, open_)
    reference = _reference(method, value)
    if reference is not None:
        found = catalogue.resolve(reference)
        if found is not None or method is not None:
            return catalogue.methods["name"](found or reference)
    if method is None:
        method = "path" if value.endswith(_FILES) else "name"
    if method not in catalogue.methods:
        known = sorted({*catalogue.methods, "selector"})
        raise _wrong(
            f"there is no selection method '{method}'",
            did_you_mean(method, known, f"the methods are: {', '.join(known)}"),
        )
    return catalogue.methods[method](value)


def _reference(method: str | None, value: str) -> str | None:
    """What may be a reference of the specification; its colon looks like that of a method."""
    if method is None:
        return value if "/" in value and not value.endswith(_FILES) else None
    return f"{method}:{value}" if method == "did" or value.startswith("//") else None


def _named(catalogue: Selectable, name: str, open_: tuple[str, ...]) -> set[str]:
    if name in open_:
        path = " → ".join((*open_, name))
        raise _wrong(
            f"the selector '{name}' refers to itself: {path}", "correct it in odfbuild.yaml"
        )
    if name not in catalogue.selectors:
        known = sorted(catalogue.selectors)
        raise _wrong(
            f"there is no selector '{name}'",
            did_you_mean(
                name, known, f"the selectors are: {', '.join(known)}" if known else _HOW_TO_NAME
            ),
        )
    return _any_of(catalogue, [catalogue.selectors[name]], (*open_, name))


_HOW_TO_NAME = "name selections below `selectors` in odfbuild.yaml"


def paths_of(file: str) -> Iterator[str]:
    """A path and all folders above it: `a/b/c.yaml`, `a/b`, `a`."""
    while file:
        yield file
        file = file.rpartition("/")[0]


def _no_match(method: str, value: str, known: Sequence[str], *, closed: bool) -> GraphError:
    what = f"there is no dataset '{value}' here" if method == "name" else None
    what = what or (
        f"'{value}' is no {method} that exists" if closed else f"no dataset has {method} '{value}'"
    )
    all_of_them = f"it can be: {', '.join(known)}" if closed else "`odfbuild ls` lists all datasets"
    return _wrong(what, did_you_mean(value, known, all_of_them), code="E0212")


def _malformed(text: str, part: str) -> GraphError:
    inside = f" in '{part}'" if part != text else ""
    return _wrong(
        f"'{text}'{inside} is not a selection",
        "write it as in 'name', '+name', 'name+2', '@name', 'tag:daily', 'path:datasets/roots'",
    )


def _wrong(message: str, help_: str, code: str = "E0211") -> GraphError:
    return GraphError(message, code=code, help=help_, exit_code=EXIT_USAGE)
