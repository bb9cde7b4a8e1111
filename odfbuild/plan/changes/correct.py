"""`--allow correct`: apply a changed query to the existing records of a changelog.

Without it, they are corrected when an input has new records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetTransform
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.rebuild import not_selected
from odfbuild.plan.model import Reason, ReasonCode
from odfbuild.project.model import Definition
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.sql.translate.named import NO_ENGINES, Engines, remote_of
from odfbuild.wording import did_you_mean


def asked_for(by: str | None = None) -> Reason:
    """The reason of a correction that a setting, or else an option asks for."""
    return Reason(
        code=ReasonCode.CORRECT,
        message=f"{by or '--allow correct is given'}: its records are corrected to match the "
        "current query",
    )


def to_correct(
    requests: Iterable[Consent],
    definitions: Iterable[Definition],
    left_out: Collection[str] = (),
    engines: Engines = NO_ENGINES,
) -> frozenset[str]:
    """Names in lower case of the datasets that these requests are about.

    Raises `PlanError` for one that cannot be corrected by its query.
    """
    defined = {definition.folded: definition for definition in definitions}
    found = set()
    for request in requests:
        definition = defined.get(request.name.lower())
        if definition is None:
            names = [each.name for each in defined.values()]
            raise _cannot(
                request.name,
                f"there is no definition of '{request.name}' to correct",
                did_you_mean(request.name, names, "`odfbuild ls` lists all datasets"),
            )
        name = definition.name
        if request.readers:
            raise _cannot(
                name,
                f"'correct:{name}+' includes the downstream datasets of '{name}', too",
                "remove the `+`: downstream datasets get the corrections as new records: "
                f"correct:{name}",
            )
        if not is_changelog(definition, engines):
            raise _cannot(
                name,
                f"the records of '{name}' cannot be corrected: it is not kept as a changelog",
                f"rebuild it from the start: --allow rebuild:{name}+",
            )
        if name in left_out:
            raise not_selected(name, "corrected")
        found.add(definition.folded)
    return frozenset(found)


def waits(transform: SetTransform, state: Projection | None) -> bool:
    """Whether the records of a dataset follow an earlier query than the one that is committed."""
    return (
        state is not None
        and state.query_waits
        and expected_mode(transform.transform).mode is Mode.CHANGELOG
    )


def waiting(name: str, state: Projection) -> Reason:
    """The reason why nothing happens while they do."""
    return Reason(
        code=ReasonCode.QUERY_WAITS,
        message=f"its records are results of the query of block #{state.last_query} until there "
        "is new "
        f"input; to correct them now: odfbuild apply --allow correct:{name}",
    )


def is_changelog(definition: Definition, engines: Engines) -> bool:
    """Whether the text of its query speaks for a result whose records can be corrected."""
    return any(
        isinstance(event, SetTransform)
        and remote_of(event.transform, engines) is None
        and expected_mode(event.transform).mode is Mode.CHANGELOG
        for event in definition.snapshot.metadata
    )


def _cannot(name: str, message: str, help: str) -> PlanError:
    return PlanError(message, code="E0352", dataset=name, help=help)
