"""What an apply looks at where columns are personal: rights, old plain values, words of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace

from odfbuild.engine.settings import EngineSettings, in_force
from odfbuild.errors import Code, IngestError, OdfbuildError, PersonalDataError, QueryError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddData, DatasetKind, ExecuteTransform
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.records.personal.files import holds_plain_values
from odfbuild.store.workspace import Workspace

_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_RUN_TIME = Code.FAILING_RECORD
"""An error that a record causes while a query runs: Spark's words quote values as it likes."""

Hide = Callable[[OdfbuildError], OdfbuildError]


def is_personal(workspace: Workspace, names: Collection[str]) -> bool:
    """Whether any of these datasets has personal columns."""
    return workspace.personal is not None and any(map(workspace.personal.has, names))


def check_rights(
    workspace: Workspace, dataset: str, inputs: Collection[str], engine: EngineSettings
) -> None:
    """Raise `PersonalDataError` before any work: E1604 without keys, E1607 for an engine elsewhere.

    Whether a query reads personal columns of its inputs, its step tells.
    """
    if workspace.personal is None or not is_personal(workspace, (dataset, *inputs)):
        return
    if not in_force(engine).embedded:
        raise PersonalDataError(
            f"'{dataset}' has or reads personal columns, and Spark runs elsewhere: "
            f"{in_force(engine).address}",
            code="E1607",
            dataset=dataset,
            notes=("plain values and keys do not leave this machine",),
            help="compute it with `engine.master: local[*]`",
        )
    if workspace.personal.has(dataset):
        workspace.personal.required_keys(dataset)


def told_of_plain_values(workspace: Workspace, dataset: str, state: Projection | None) -> str:
    """A warning where the newest records were committed before their columns were personal.

    `PersonalDataError` E1612 for a derivative: a plain record could not be taken back by an
    encrypted one, and it can be computed again.
    """
    personal = workspace.personal
    if personal is None or state is None or state.schema is None:
        return ""
    scope = personal.of(dataset, state.dataset_id)
    if scope is None:
        return ""
    store = workspace.dataset(dataset)
    for _, block in store.walk(state.head):
        event = block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            found = holds_plain_values(store.bring("data", event.new_data.physical_hash), scope)
            if not found:
                return ""
            if state.kind is DatasetKind.Derivative:
                raise PersonalDataError(
                    f"the records of '{dataset}' have {', '.join(found)} as plain text, which "
                    "became personal later",
                    code="E1612",
                    dataset=dataset,
                    help=f"build it anew: odfbuild apply --allow rebuild:{dataset}+",
                )
            return (
                f"earlier values of {', '.join(found)} were committed as plain text, and stay so; "
                "to encrypt them, build the dataset anew (docs/personal-data.md)"
            )
    return ""


def hiding_of(workspace: Workspace, dataset: str, inputs: Collection[str]) -> Hide | None:
    """Takes values of records out of errors; `None` where no column is personal."""
    if not is_personal(workspace, (dataset, *inputs)):
        return None

    def hide(error: OdfbuildError) -> OdfbuildError:
        known = {"input", dataset, *inputs}
        for name in (dataset, *inputs):
            state = workspace.projection(name)
            known.update(schema_of(state.schema).names if state and state.schema else ())
        return error.mapped(lambda each: without_values(each, known))

    return hide


def without_values(error: OdfbuildError, known: Collection[str]) -> OdfbuildError:
    """An error of records without what it quotes, but for `known` names."""
    if error.code == _RUN_TIME:
        return error.changed(
            message="a record makes the query fail",
            notes=("what Spark says of it is not shown: personal columns are read or written",),
        )
    if not isinstance(error, IngestError | QueryError):
        return error
    place = error.location
    known = {*known, *((place.file,) if place is not None else ())}
    if isinstance(error, IngestError) and place is not None:
        place = replace(place, snippet=None)
    return error.changed(
        message=_hidden(error.message, known),
        notes=tuple(_hidden(each, known) for each in error.notes),
        location=place,
    )


def _hidden(text: str, known: Collection[str]) -> str:
    def shown(found: re.Match[str]) -> str:
        inner = found[0][1:-1]
        return found[0] if inner in known else f"{found[0][0]}…{found[0][-1]}"

    return _QUOTED.sub(shown, text)
