"""What `onQueryChange` in odfbuild.yaml does to the records of datasets whose queries changed.

It gives the consent that `--allow correct` and `--allow rebuild` give, dataset by dataset. Whoever
names a dataset in an option decides for this run. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind, SetTransform
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.correct import is_changelog
from odfbuild.plan.changes.diff import Identities, changes_query
from odfbuild.plan.inputs import ChainIdentities
from odfbuild.plan.model import DatasetPlan, Plan, ReasonCode
from odfbuild.project.model import Definition
from odfbuild.project.settings.policy import OnQueryChange, Policy, on_query_change
from odfbuild.sql.translate.named import Engines
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

_REFUSED_CHANGES = frozenset(
    {ReasonCode.BREAKING, ReasonCode.POLICY_ADDITIVE, ReasonCode.POLICY_FORWARD_ONLY}
)
"""Why a change is refused that a rebuild makes possible."""


class Wish(Value):
    """What entry `number` of `policies` wants for the changed query of a dataset.

    It is `forward` where records cannot be corrected.
    """

    name: str
    what: OnQueryChange
    number: int


def wishes(
    plan: Plan,
    definitions: Sequence[Definition],
    identities: ChainIdentities,
    policies: Sequence[Policy],
    engines: Engines,
    named: Collection[str] = (),
) -> Iterator[Wish]:
    """What the policies want for the datasets of a plan that was made without them.

    Datasets that options have `named`, in lower case, are none of their business.
    """
    defined = {each.folded: each for each in definitions}
    for item in plan.datasets:
        name = item.name
        said = on_query_change(policies, name)
        if said is None or name.lower() in named:
            continue
        what, number = said
        definition, state = defined.get(name.lower()), identities.states.get(name.lower())
        if definition is None or state is None or not state.ever_ran or what == "forward":
            continue
        if DatasetKind.Root in (state.kind, definition.snapshot.kind):
            continue
        if what == "rebuild":
            if _is_changed(item) or _is_refused(item, definition, state, identities):
                yield Wish(name, what, number)
        elif is_changelog(definition, engines):
            if _is_changed(item) or (item.refusal is None and state.query_waits):
                yield Wish(name, what, number)
        elif _is_changed(item):
            yield Wish(name, "forward", number)


def _is_changed(item: DatasetPlan) -> bool:
    return any(isinstance(each.after, SetTransform) for each in item.changes)


def _is_refused(
    item: DatasetPlan, definition: Definition, state: Projection, identities: Identities
) -> bool:
    """Whether a changed query is refused, and would not be in a rebuild."""
    codes = {each.code for each in item.reasons}
    if item.refusal is None or codes.isdisjoint(_REFUSED_CHANGES):
        return False
    return changes_query(definition.snapshot, state, identities)


def stays(wish: Wish, setting: str) -> str:
    """Why the records of a dataset stay although a setting wants them corrected."""
    return (
        f"{setting} corrects only what is kept as a changelog: its existing records stay, and "
        f"--allow rebuild:{wish.name}+ recomputes them"
    )


def cannot_be_rebuilt(name: str, setting: str, why: PlanError) -> PlanError:
    """The refusal of a change whose setting asks for a rebuild that cannot be."""
    instead = f"or let the changed query hold for new records in this run: --allow forward:{name}"
    return PlanError(
        f"'{name}' cannot be rebuilt: {why.message}",
        code=why.code,
        notes=(f"{setting} asks for the rebuild, because its query changed", *why.notes),
        help=f"{why.help}, {instead}" if why.help else instead,
        dataset=name,
    )


def check_forward(
    requests: Iterable[Consent], others: Iterable[Consent], definitions: Iterable[Definition]
) -> None:
    """Raise `PlanError` E0353 for a `forward` that is about no query, or contradicts `others`."""
    requests = tuple(requests)
    if not requests:
        return
    defined = {each.folded: each for each in definitions}
    otherwise = {each.name.lower() for each in others}
    for each in requests:
        definition = defined.get(each.name.lower())
        if definition is None:
            names = [known.name for known in defined.values()]
            help = did_you_mean(each.name, names, "`odfbuild ls` lists all datasets")
            raise _cannot(each.name, f"there is no definition of '{each.name}'", help)
        name = definition.name
        if each.readers:
            raise _cannot(
                name,
                f"'forward:{name}+' includes the downstream datasets of '{name}', too",
                f"remove the `+`, and name each dataset whose query changed: forward:{name}",
            )
        if not definition.inputs:
            raise _cannot(name, f"'{name}' is a root: it has no query", "remove the option")
        if definition.folded in otherwise:
            raise _cannot(
                name,
                f"two options say what the changed query of '{name}' does to its records",
                "give one of forward, correct and rebuild",
            )


def _cannot(name: str, message: str, help: str) -> PlanError:
    return PlanError(message, code="E0353", dataset=name, help=help)
