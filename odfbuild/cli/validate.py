"""`odfbuild validate`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions
from odfbuild.errors import OdfbuildError, together

if TYPE_CHECKING:
    from odfbuild.apply.queries import Checked
    from odfbuild.survey.definitions import Definitions


def validate(
    state: Context,
    *,
    engine: Annotated[
        bool,
        typer.Option(
            "--engine", help="Also let Spark check all queries against schemas; reads no data."
        ),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Check all definitions without Spark and without the network.

    YAML, templates, types, inputs, cycles and queries.
    """
    from odfbuild.survey.definitions import look_at_definitions
    from odfbuild.wording import count

    found = look_at_definitions(state.directory, state.given)
    _help_editors(found)
    _raise_all(found, engine_follows=engine)
    text = f"{count(len(found.project.definitions), 'dataset')} defined, all valid"
    names = [each.name for each in found.project.definitions]
    if not engine:
        state.console.show(as_json, lambda: {"datasets": names}, lambda: f"{text}.")
        return 0
    checked = _check(state, found)
    _raise_errors(found, checked)
    if as_json:
        state.console.data(
            {"datasets": names, "checked": checked.right, "unknown": list(checked.unknown)}
        )
        return 0
    verb = "was" if checked.right == 1 else "were"
    queries = f"{checked.right} {'query' if checked.right == 1 else 'queries'}"
    state.console.result(f"{text}; {queries} {verb} checked by the engine.")
    if checked.unknown:
        unknown = ", ".join(checked.unknown)
        state.console.note(
            f"Not checked for columns, because their inputs have no data yet: {unknown}."
        )
    return 0


def _help_editors(found: Definitions) -> None:
    from odfbuild.project.editor import provide_schemas

    with contextlib.suppress(OSError):  # a project that may only be read is valid, too
        provide_schemas(found.project.config.root)


def _raise_all(found: Definitions, *, engine_follows: bool) -> None:
    """Raise all that is wrong with definitions, queries, settings and unit tests by their text."""
    from odfbuild.survey.validation import all_that_is_wrong

    wrong = all_that_is_wrong(found, engine_follows=engine_follows)
    if wrong:
        raise together(wrong)


def _check(state: Context, found: Definitions) -> Checked:
    from odfbuild.apply.queries import KnownQueries, Subject, check_queries
    from odfbuild.engine.lazy import LazyEngine
    from odfbuild.engine.release import engine_version

    by_name = {definition.name: definition for definition in found.project.definitions}
    subjects = [
        Subject(name=name, events=by_name[name].snapshot.metadata, inputs=found.graph.inputs[name])
        for name in found.graph.order
    ]
    known = KnownQueries(found.workspace.cache, engine_version())
    with LazyEngine(state.start_engine) as engine:
        return check_queries(
            subjects, found.projections, engine.get, known, found.project.config.engines
        )


def _raise_errors(found: Definitions, checked: Checked) -> None:
    from odfbuild.survey.locate import locate

    errors: list[OdfbuildError] = []
    for name, error in checked.errors.items():
        placed = locate(found.project, name, error)
        errors += placed.apart()
    if errors:
        raise together(errors)
