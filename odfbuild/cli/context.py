"""The context of every command: the console and the project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.cli.console import Console
from odfbuild.errors import Code
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine
    from odfbuild.engine.settings import EngineSettings
    from odfbuild.exchange.repositories.open import Remotes
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Config
    from odfbuild.project.settings.owners import Ownership
    from odfbuild.store.workspace import Workspace
    from odfbuild.survey.survey import PlanRequest, Survey


STARTING = "Starting Spark …"


class Context(Value):
    """Global options of a command."""

    console: Console
    directory: Path | None = None
    given: Overrides = NO_OVERRIDES
    _read: dict[tuple[Path | None, Overrides], Config] = field(
        default_factory=dict, repr=False, compare=False
    )

    def survey(self, plan_request: PlanRequest | None = None) -> Survey:
        """Read the project, its chains and its local sources; make the requested plan."""
        from odfbuild.survey.survey import survey

        return survey(self.directory, plan_request, self.given)

    def chosen(self, selection: Selection) -> list[str] | None:
        """Present names of the selected datasets, sorted; `None` when nothing was asked for."""
        if not selection:
            return None
        named = self._named(selection)
        if named is not None:
            return named
        from odfbuild.survey.survey import choose

        names, found = choose(self.directory, selection, self.given)
        return sorted(found.renames.get(name, name) for name in names)

    def defined(self, selection: Selection) -> frozenset[str] | None:
        """The selected datasets by the names that definitions have; `None`: nothing asked for."""
        from odfbuild.survey.survey import choose

        return choose(self.directory, selection, self.given)[0] if selection else None

    def names(self) -> list[str]:
        """Names of all datasets that are defined or have a chain, sorted."""
        from odfbuild.project.load import read_project

        found = read_project(self.directory, self.given)
        defined = {each.name for each in found.definitions}
        defined |= {each.name for each in found.wrong if each.name}
        return sorted(defined | {*self.workspace().aliases()})

    def dataset(self, name: str) -> tuple[Workspace, str]:
        """The chains, and the present name of a dataset; `PlanError` for one that is not there."""
        from odfbuild.survey.names import existing

        workspace = self.workspace()
        return workspace, existing(workspace, name)

    def committed(self, workspace: Workspace, selection: Selection) -> list[str]:
        """Names of the selected datasets that have a chain, sorted; all when none was asked for."""
        chosen = self.chosen(selection)
        return [name for name in workspace.aliases() if chosen is None or name in chosen]

    def states_at(self, selection: Selection, as_of: str) -> dict[str, Projection]:
        """What the chains of the selected datasets said at a time or block, those that existed.

        Definitions are read only for a selection by more than names.
        """
        from odfbuild.store.as_of import states_at
        from odfbuild.survey.names import moment_in

        workspace = self.workspace()
        names = self.committed(workspace, selection)
        moment = moment_in(workspace, as_of, names[0] if len(names) == 1 else None)
        return states_at(workspace, moment, names)

    def _named(self, selection: Selection) -> list[str] | None:
        """The datasets of a selection of nothing but names of chains; these may be damaged."""
        known = {alias.lower(): alias for alias in self.workspace().aliases()}
        if selection.exclude or not {name.lower() for name in selection.select} <= known.keys():
            return None
        return sorted({known[name.lower()] for name in selection.select})

    def config(self) -> Config:
        """What `odfbuild.yaml` and files of variables said when the command first read them."""
        from odfbuild.project.config import load_config

        key = self.directory, self.given
        if key not in self._read:
            self._read[key] = load_config(*key)
        return self._read[key]

    def remotes(self) -> Remotes:
        """The project's repositories; where there is no project, those with an address."""
        from odfbuild.errors import OdfbuildError
        from odfbuild.exchange.repositories.open import Remotes

        try:
            config = self.config()
        except OdfbuildError as error:
            if error.code != Code.NO_PROJECT:
                raise
            return Remotes(self.directory or Path(), {})
        return Remotes(config.root, config.repositories)

    def owners(self) -> tuple[Ownership, ...]:
        """Owners of datasets; nobody where there is no project."""
        from odfbuild.errors import OdfbuildError

        try:
            return self.config().owners
        except OdfbuildError as error:
            if error.code != Code.NO_PROJECT:
                raise
            return ()

    def tell_of_engine(self, plan: Plan) -> bool:
        """Say that Spark is being started, if a plan is sure to need it; whether it was said."""
        from odfbuild.plan.model import takes_engine

        if not (self.console.watched and any(map(takes_engine, plan.datasets))):
            return False
        config = self.config()
        expected = replace(config.engine, expected_bytes=plan.waiting_bytes)
        return self._tell_of_start(config, expected)

    def start_engine(
        self, expected_bytes: int = 0, *, told: bool = False, needed: bool = False
    ) -> Engine:
        """Start Spark as `odfbuild.yaml` says, for that much input; takes seconds.

        Where programs are engines, too, it waits until it is asked, unless it is sure to be
        `needed`. A person who watches is told when it starts, unless that was done.
        """
        from odfbuild.engine.process.resident.find import engine_for
        from odfbuild.engine.process.start import Place, start_engines

        config = self.config()
        settings = replace(config.engine, expected_bytes=expected_bytes)

        def start() -> Engine:
            if not told:
                self._tell_of_start(config, settings)
            alone = bool(config.personal)
            return engine_for(config.root, settings, config.reach, alone=alone)

        ingest = config.ingest
        place = Place(
            config.root, config.cache, ingest.container_runtime, ingest.container_arguments
        )
        return start_engines(config.engines, place, start, needed=needed)

    def tell_of_hidden(self, workspace: Workspace, datasets: Iterable[str]) -> None:
        """Say that values of personal columns are not shown, if that is so."""
        if workspace.personal is not None:
            from odfbuild.records.personal.shown import told_as_hidden

            said = told_as_hidden(workspace.personal, datasets)
            if said:
                self.console.note(said)

    def _tell_of_start(self, config: Config, settings: EngineSettings) -> bool:
        """Say that Spark is being started, unless it runs already; whether it was said."""
        from odfbuild.engine.process.resident.find import is_warm

        said = self.console.watched and not is_warm(config.root, settings, config.reach)
        if said:
            self.console.note(STARTING)
        return said

    def workspace(self) -> Workspace:
        """The chains of the project, whatever its definitions say."""

        from odfbuild.exchange.repositories.fetch_on_demand import workspace_of

        return workspace_of(self.config())
