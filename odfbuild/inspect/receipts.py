"""Evidence for the causes of an explanation: numbers of blocks, commits of Git, checks of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from odfbuild.errors import IntegrityError, Location, PlanError
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.explain import BlockPosition, Cause, Evidence, Explanation
from odfbuild.project.git.notes import CommitInfo, commit_of_line
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.model import Config
from odfbuild.project.settings.checks import checks_of
from odfbuild.store.workspace import Workspace
from odfbuild.survey.blame import blame
from odfbuild.survey.runs import LastResult, last_results


def with_receipts(
    explanation: Explanation,
    config: Config,
    workspace: Workspace,
    renames: Mapping[str, str],
) -> Explanation:
    """The explanation with what can be looked up about it; `renames` are present names by new.

    Without Git, or with history of it that is not here, there are no commits.
    """
    look = _Lookup(config, workspace, renames)
    last = last_results(config.cache, config.branch).get(explanation.name)
    return replace(
        explanation,
        causes=tuple(map(look.cause, explanation.causes)),
        settled=(*explanation.settled, *_checks(explanation.name, config, last)),
        last_failure=str(last) if last is not None and last.is_failure else None,
    )


def _checks(name: str, config: Config, last: LastResult | None) -> tuple[Evidence, ...]:
    """Whether the dataset kept to its checks when it last ran, as far as runs are logged."""
    asked = len(checks_of(config.checks, name))
    if not asked or last is None or last.status not in ("committed", "noop"):
        return ()
    because = f"{asked} {'was' if asked == 1 else 'were'} kept in run {last.run}"
    return (Evidence(what="its checks", because=because),)


class _Lookup:
    """Looks numbers and commits up, each dataset once."""

    def __init__(self, config: Config, workspace: Workspace, renames: Mapping[str, str]) -> None:
        self._config = config
        self._workspace = workspace
        self._renames = renames
        self._blamed: dict[str, dict[Multihash, CommitInfo | None]] = {}

    def cause(self, cause: Cause) -> Cause:
        """A cause and its children with their evidence."""
        reason = cause.reason
        start = end = None
        if reason.input is not None:
            start = self._point(reason.input, reason.from_block)
            end = self._point(reason.input, reason.to_block)
        commit = self._commit_of_line(cause.place) if cause.place else end and end.commit
        return replace(
            cause,
            start=start,
            end=end,
            commit=commit or None,
            children=tuple(map(self.cause, cause.children)),
        )

    def _point(self, dataset: str, block: Multihash | None) -> BlockPosition | None:
        if block is None:
            return None
        store = self._workspace.dataset(self._renames.get(dataset, dataset))
        try:
            number = store.read_block(block).sequence_number
        except IntegrityError:
            return None  # its history was rewritten
        if store.name not in self._blamed:
            try:
                found = blame(self._config, store)
            except PlanError:
                found = []
            self._blamed[store.name] = {each.hash: each.commit for each in found}
        commit = self._blamed[store.name].get(block)
        return BlockPosition(sequence_number=number, commit=commit)

    def _commit_of_line(self, place: Location) -> CommitInfo | None:
        try:
            with repository(self._config.root, "there are no commits to name") as repo:
                file = inside(repo, self._config.root / place.file)
                return commit_of_line(repo, file, place.line) if file else None
        except PlanError:
            return None
