"""Properties of a new derivative: its inputs and their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from odfbuild.api.authoring.new_request import NewDatasetRequest, as_name, check_column, missing
from odfbuild.api.authoring.scaffold import Derived, Input, alias_of
from odfbuild.errors import GraphError, ProjectError, together
from odfbuild.odf.identity import is_name, name_for
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.survey.definitions import Definitions
from odfbuild.wording import did_you_mean

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def derived_wanted(wanted: NewDatasetRequest, found: Definitions) -> Derived:
    """The derivative that is wanted, with the columns of its inputs; raises what is missing."""
    if not wanted.sources:
        raise missing(
            "a derivative needs the datasets that it reads",
            f"odfbuild new {wanted.kind} {wanted.name} INPUT",
        )
    known = KnownColumns(found.project.definitions, found.projections)
    inputs = _inputs(wanted.sources, found, known)
    if wanted.kind == "derivative":
        return Derived(name=wanted.name, inputs=inputs, description=wanted.description)
    over, values = _over(wanted, inputs)
    return Derived(
        name=wanted.name,
        inputs=inputs,
        over=over,
        values=values,
        numbers=all(map(_NUMBER.fullmatch, values))
        and not any(_is_text(known, each, over) for each in inputs),
        description=wanted.description,
    )


def _inputs(names: Iterable[str], found: Definitions, known: KnownColumns) -> tuple[Input, ...]:
    spelled = {name.lower(): name for name in (*found.graph.order, *found.projections)}
    inputs: list[Input] = []
    errors = []
    for folded, text in {name.lower(): name for name in names}.items():
        name = spelled.get(folded) or spelled.get(name_for(folded) or "")
        if name is None:
            errors.append(
                GraphError(
                    f"there is no dataset '{text}' to read",
                    code="E0202",
                    help=did_you_mean(
                        text,
                        spelled.values(),
                        "`odfbuild ls` lists them all; `odfbuild new` creates one",
                    ),
                )
            )
            continue
        alias = alias_of(name, [each.alias for each in inputs])
        inputs.append(Input(name, alias, known.vocabulary(name).event_time, known.names(name)))
    if errors:
        raise together(errors)
    return tuple(inputs)


def _over(wanted: NewDatasetRequest, inputs: Sequence[Input]) -> tuple[str, tuple[str, ...]]:
    over, _, listed = (wanted.over or "").partition("=")
    values = tuple(dict.fromkeys(value.strip() for value in listed.split(",") if value.strip()))
    if not over or not values:
        raise missing(
            "a matrix needs a column, and a value for each dataset",
            f"odfbuild new matrix {wanted.name} {' '.join(wanted.sources)} --over country=NO,PT",
        )
    if not over.isidentifier():
        raise ProjectError(
            f"'{over}' cannot be the name of a variable in a template",
            code="E0142",
            help="give the column a name of letters, digits and underscores first",
        )
    for each in inputs:
        if each.columns is not None:
            check_column(over, each.columns, "--over", each.name)
    for value in values:
        if not is_name(f"{wanted.name.rpartition('/')[2]}.{value.lower()}"):
            raise ProjectError(
                f"'{value}' cannot be part of the name of a dataset",
                code="E0141",
                help="names are letters, digits, hyphens and dots: "
                f"begin with '{as_name(value)}', then give the template two values (`include`)",
            )
    return over, values


def _is_text(known: KnownColumns, source: Input, column: str) -> bool:
    types = known.types(source.name) or {}
    return types.get(column) in ("string", "large_string", "string_view")
