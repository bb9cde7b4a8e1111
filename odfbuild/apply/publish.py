"""Push what an apply committed to repositories, as `publish` in odfbuild.yaml says.

Commits stay, whatever happens here; the next apply pushes what was left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.apply.transfers import push_datasets
from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus, Watcher
from odfbuild.exchange.repositories.requests import PushRequest

if TYPE_CHECKING:
    from odfbuild.survey.approved import Approved
    from odfbuild.survey.outcome import ApplyOutcome
    from odfbuild.survey.survey import Survey


def publish(
    found: Survey | Approved, outcome: ApplyOutcome, watcher: Watcher | None = None
) -> ApplyOutcome:
    """The outcome with what became of each publication; nothing is pushed after an interrupt."""
    heads = {name.lower(): name for name in found.workspace.heads()}
    wanted = [each for each in found.plan.publications if each.dataset.lower() in heads]
    if not wanted or outcome.interrupted:
        return outcome
    names = [heads[each.dataset.lower()] for each in wanted]
    try:
        published = push_datasets(
            found.project.config, found.workspace, PushRequest(names=names), watcher=watcher
        )
    except OdfbuildError as error:  # about the request, so that nothing was begun
        published = tuple(
            Transfer(
                name=each.dataset,
                address=each.repository,
                status=TransferStatus.FAILED,
                error=error,
            )
            for each in wanted
        )
    return replace(outcome, published=published)
