"""Ask repositories for news of datasets of others; nothing is changed, and no data is fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.external import external_datasets
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.outcome import Transfer
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.requests import PullRequest, pulls_of
from odfbuild.plan.model import News
from odfbuild.project.model import Config, Definition
from odfbuild.store.workspace import Workspace


def news_of(
    config: Config,
    definitions: Iterable[Definition],
    workspace: Workspace,
    names: Collection[str],
) -> tuple[News, ...]:
    """What a pull of each of these datasets would bring, or why that cannot be told; sorted."""
    definitions = tuple(definitions)
    found: dict[str, News] = {}
    wanted: list[Pull] = []
    with Remotes(config.root, config.repositories) as remotes:
        for each in external_datasets(config, definitions, workspace).values():
            if each.name not in names:
                continue
            request = PullRequest(references=[each.name], data=False)
            try:
                wanted += pulls_of(config, definitions, workspace, remotes, request)
            except OdfbuildError as error:
                found[each.name] = News(dataset=each.name, error=error)
        for transfer in pull(workspace, wanted, dry_run=True):
            found[transfer.name] = _news(transfer)
    return tuple(found[name] for name in sorted(found))


def _news(transfer: Transfer) -> News:
    return News(
        dataset=transfer.name,
        head=transfer.after,
        blocks=transfer.blocks,
        records=transfer.records,
        error=transfer.error,
    )
