"""What `onQueryChange` in odfbuild.yaml asks of a plan, and what it brings about.

Says where the setting stands, and looks for what forbids a rebuild, as for one that an option asks
for: readers that are not selected, orphaned readers, protected histories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.on_query_change import Wish, cannot_be_rebuilt, stays, wishes
from odfbuild.plan.changes.rebuild import to_rebuild
from odfbuild.plan.inputs import ByPolicy, ChainIdentities
from odfbuild.plan.model import Plan
from odfbuild.plan.readers import all_readers, consumers_of
from odfbuild.project.config import place_in_config
from odfbuild.project.model import Config, Project
from odfbuild.store.workspace import Workspace
from odfbuild.survey.protection import check_unprotected
from odfbuild.values import Value


def setting(config: Config, number: int) -> str:
    """`onQueryChange` of an entry of `policies`, and where it stands, for sentences."""
    place = place_in_config(config.root, "content", "policies", number, "onQueryChange")
    where = place.file if place.line is None else f"{place.file}:{place.line}"
    return f"`onQueryChange: {config.policies[number].on_query_change}` in {where}"


def query_policy(
    plan: Plan,
    project: Project,
    workspace: Workspace,
    projections: Mapping[str, Projection],
    renames: Mapping[str, str],
    named: Iterable[Consent],
) -> QueryPolicy | None:
    """What the setting wants for the changed queries of a plan made without it; `None`: nothing.

    It says nothing about datasets that are `named` in options.
    """
    config = project.config
    asked = tuple(
        wishes(
            plan,
            project.definitions,
            ChainIdentities(projections),
            config.policies,
            config.engines,
            {each.name.lower() for each in named},
        )
    )
    if not asked:
        return None
    said = {number: setting(config, number) for number in {each.number for each in asked}}
    return QueryPolicy(project, workspace, projections, renames, asked, said)


class QueryPolicy(Value):
    """The wishes of a setting for changed queries; `said` is where each entry has it."""

    project: Project
    workspace: Workspace
    projections: Mapping[str, Projection]
    renames: Mapping[str, str]
    wishes: Sequence[Wish]
    said: Mapping[int, str]

    def settled(self, left_out: Collection[str] = (), deleted: Collection[str] = ()) -> ByPolicy:
        """What they bring about where some datasets are left out and others deleted."""
        asked = [each for each in self.wishes if each.name not in left_out]
        rebuilds = [each for each in asked if each.what == "rebuild"]
        refused = self._refused(rebuilds, left_out, deleted) if rebuilds else {}
        said = {each.name.lower(): (each, self.said[each.number]) for each in asked}
        return ByPolicy(
            corrected={name: at for name, (each, at) in said.items() if each.what == "correct"},
            rebuilt=self._with_readers([e for e in rebuilds if e.name.lower() not in refused]),
            kept={n: stays(each, at) for n, (each, at) in said.items() if each.what == "forward"},
            refused=refused,
        )

    def _refused(
        self, rebuilds: Sequence[Wish], left_out: Collection[str], deleted: Collection[str]
    ) -> dict[str, OdfbuildError]:
        """The rebuilds that cannot be, and why, by name in lower case."""
        try:
            self._check(rebuilds, left_out, deleted)  # at once: who reads what takes all chains
        except PlanError:
            pass
        else:
            return {}
        places = {each.name: each.location for each in self.project.definitions}
        refused: dict[str, OdfbuildError] = {}
        for each in rebuilds:
            try:
                self._check([each], left_out, deleted)
            except PlanError as error:
                why = cannot_be_rebuilt(each.name, self.said[each.number], error)
                refused[each.name.lower()] = why.at(places[each.name])
        return refused

    def _check(
        self, rebuilds: Sequence[Wish], left_out: Collection[str], deleted: Collection[str]
    ) -> None:
        consents = [Consent(each.name, readers=True) for each in rebuilds]
        lying = {new.lower(): old for new, old in self.renames.items()}
        definitions = self.project.definitions
        for name in sorted(to_rebuild(consents, definitions, self.projections, left_out, deleted)):
            check_unprotected(self.project.config, self.workspace, name, lying.get(name, name))

    def _with_readers(self, rebuilds: Sequence[Wish]) -> dict[str, str]:
        """What asks for the rebuild of these datasets and of all that consumed their records."""
        if not rebuilds:
            return {}
        states = {name.lower(): (name, state) for name, state in self.projections.items()}
        consumers = consumers_of(self.projections)
        asks: dict[str, str] = {}
        for each in rebuilds:
            _, state = states[each.name.lower()]
            for reader in all_readers(state.dataset_id, consumers, states):
                by = f"{self.said[each.number]} rebuilds '{each.name}' upstream of it"
                asks.setdefault(reader, by)
        return asks | {each.name.lower(): self.said[each.number] for each in rebuilds}
