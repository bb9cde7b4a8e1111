"""`odfbuild schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions
from odfbuild.errors import ProjectError
from odfbuild.wording import did_you_mean

PLAN = "plan"
PROJECT = "project"
UNIT_TESTS = "unit-tests"
DATASET = "dataset"
RUN_EVENT = "run-event"
_FILES = {
    PLAN: "plan.schema.json",
    PROJECT: "Project.json",
    UNIT_TESTS: "UnitTests.json",
    RUN_EVENT: "run-event.schema.json",
}


def schema(
    state: Context,
    *,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            autocompletion=complete.schemas,
            help="An object of the protocol; or 'plan', 'project', 'dataset', 'unit-tests', "
            "'run-event'.",
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Print a JSON Schema of the protocol, or list them.

    A schema is always JSON; without KIND, --json prints the list as JSON.
    """
    from odfbuild.odf.json_schema import catalogue, schema_named

    if kind in _FILES:
        from odfbuild.project.resources import schema_text

        state.console.result(schema_text(_FILES[kind]))
        return 0
    if kind is None:
        names = {
            **catalogue(),
            PLAN: "What `odfbuild plan --json` prints and `-o` saves",
            RUN_EVENT: "A line of `odfbuild apply --json-lines`",
            PROJECT: "What odfbuild.yaml may hold",
            UNIT_TESTS: "Unit tests of queries, in files that end in .test.yaml",
        }
        if as_json:
            state.console.data(names)
            return 0
        width = max(map(len, names))
        state.console.result(
            "\n".join(f"{name:<{width}}  {about}".rstrip() for name, about in names.items())
        )
        return 0
    found = schema_named("DatasetSnapshot" if kind == DATASET else kind)
    if found is None:
        raise _no_such(kind, tuple(catalogue()))
    state.console.data(found)
    return 0


def _no_such(kind: str, names: tuple[str, ...]) -> ProjectError:
    return ProjectError(
        f"the protocol has no object '{kind}'",
        code="E0134",
        help=did_you_mean(kind, names, "`odfbuild schema` lists them"),
    )
