"""The base of the Python interface: a project's folder, environment and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from odfbuild.displayed import HTML, TEXT
from odfbuild.errors import BranchError
from odfbuild.project.config import load_config
from odfbuild.project.overrides import Overrides
from odfbuild.store.branches import BranchName
from odfbuild.store.workspace import Workspace
from odfbuild.survey.names import existing

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine
    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.inspect.verify.provenance import TracedRecords
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Config
    from odfbuild.survey.survey import PlanRequest, Survey


class Base:
    """A project that was found; see `Project`."""

    def __init__(
        self,
        folder: str | Path = ".",
        *,
        env: str | None = None,
        branch: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        register()
        self._folder = Path(folder)
        self._given = Overrides(
            env=env,
            branch=None if branch is None else BranchName.parse(branch),
            values=tuple((variables or {}).items()),
        )
        self.root = self.config().root

    @classmethod
    def given(cls, folder: Path, given: Overrides) -> Self:
        """A project with all that a command line may say about how to read it."""
        made = cls.__new__(cls)
        register()
        made._folder, made._given = folder, given
        made.root = made.config().root
        return made

    def __repr__(self) -> str:
        return f"Project({str(self.root)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End Spark, which runs on from the first call that needed it; a later one starts it again.

        It also ends with the process, and when another project needs Spark.
        """
        from odfbuild.engine.shared import close

        close(self)

    def config(self) -> Config:
        """What `odfbuild.yaml` says."""
        return load_config(self._folder, self._given)

    def workspace(self) -> Workspace:
        """The chains of the project, for what has no method here."""
        from odfbuild.exchange.repositories.fetch_on_demand import workspace_of

        found = workspace_of(self.config())
        found.check_branch()
        return found

    def _on_heads(self, method: str) -> Workspace:
        """The chains, for what works on heads; `BranchError` E1103 in a branch."""
        if self._given.branch is not None:
            raise BranchError(
                f"`{method}` does not work in a branch",
                code="E1103",
                notes=("it works on heads",),
                help="use a `Project` without `branch`",
            )
        return self.workspace()

    def _existing(self, dataset: str) -> tuple[Workspace, str]:
        """The chains, and the present name of a dataset; `PlanError` for one that is not there."""
        workspace = self.workspace()
        return workspace, existing(workspace, dataset)

    def _named(self, workspace: Workspace, datasets: Sequence[str]) -> list[str]:
        """Present names of these datasets, or of all; `ChainError` for one that is not there."""
        return [existing(workspace, each) for each in datasets] or workspace.aliases()

    def _start_engine(self, expected_bytes: int = 0) -> Engine:
        from odfbuild.engine.process.resident.find import engine_for
        from odfbuild.engine.process.start import Place, start_engines
        from odfbuild.engine.shared import lend

        config = self.config()
        settings = replace(config.engine, expected_bytes=expected_bytes)
        start = partial(engine_for, config.root, alone=bool(config.personal))
        ingest = config.ingest
        place = Place(
            config.root, config.cache, ingest.container_runtime, ingest.container_arguments
        )

        def built_in() -> Engine:
            return lend(self, start, settings, config.reach)

        return start_engines(config.engines, place, built_in)

    def _survey(self, asked: PlanRequest | None = None) -> Survey:
        from odfbuild.survey.survey import survey

        return survey(self._folder, asked, self._given)


def _plan_as_text(plan: Plan) -> str:
    """The plan as `odfbuild plan` prints it."""
    from odfbuild.report.forms.visible import visible
    from odfbuild.report.plan.text import render_plan

    return visible(render_plan(plan))


def _plan(plan: Plan) -> str:
    from odfbuild.report.notebook import plan_html

    return plan_html(plan)


def _graph(graph: Graph) -> str:
    from odfbuild.report.notebook import graph_html

    return graph_html(graph)


def _verdict(verdict: Verdict) -> str:
    from odfbuild.report.notebook import verdict_html

    return verdict_html(verdict)


def _traced(tree: TracedRecords) -> str:
    from odfbuild.report.notebook import provenance_html

    return provenance_html(tree)


def register() -> None:
    """Let such values show themselves; what makes their forms is loaded when one is shown."""
    TEXT.update(Plan=_plan_as_text)
    HTML.update(Plan=_plan, Graph=_graph, Verdict=_verdict, TracedRecords=_traced)
