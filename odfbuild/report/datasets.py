"""The list of datasets: `ls`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.exchange.repositories.listing import ListedDataset
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.model import Action, Plan, ReasonCode
from odfbuild.project.settings.owners import Ownership, owners_of
from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import size

if TYPE_CHECKING:
    from odfbuild.store.deleted import Deleted

_HEADER = ("NAME", "KIND", "RECORDS", "LIVE", "SIZE", "BLOCKS", "WATERMARK", "HEAD")
_RIGHT = frozenset({2, 3, 4, 5})
_STATUS = {
    Action.PROMOTE: "to be promoted",
    Action.CREATE: "new",
    Action.REBUILD: "to be rebuilt",
    Action.RENAME: "to be renamed",
    Action.APPEND: "changed",
    Action.RUN: "stale",
    Action.POLL: "to be checked",
    Action.FORGET: "no definition",
    Action.REFUSE: "refused",
}


def statuses(plan: Plan) -> dict[str, str]:
    """How each dataset stands by a plan, by name: `stale`, `up to date`, …"""
    found = {}
    for dataset in plan.datasets:
        if dataset.actions:
            found[dataset.name] = ", ".join(_STATUS[action] for action in dataset.actions)
        elif any(reason.code is ReasonCode.INPUT_HAS_NO_DATA for reason in dataset.reasons):
            found[dataset.name] = "waiting"
        elif dataset.query_waits:
            found[dataset.name] = "earlier query"
        else:
            found[dataset.name] = "up to date"
    for each in plan.external:
        found[each.name] = "external" if each.head else "not pulled"
    return found


def render_datasets(
    projections: Mapping[str, Projection],
    status: Mapping[str, str] | None = None,
    kinds: Mapping[str, DatasetKind] | None = None,
    live: Mapping[str, int | None] | None = None,
) -> str:
    """Datasets with a chain as a table, by name; with `status` also those that have none yet.

    `kinds` tells of what kind these are going to be, `live` how many records the current states
    have, as far as it is known.
    """
    names = sorted({*projections, *(status or ())})
    if not names:
        return "There are no datasets yet."
    rows = []
    for name in names:
        row = _row(name, projections.get(name), (kinds or {}).get(name), (live or {}).get(name))
        rows.append((*row, status.get(name, "")) if status is not None else row)
    header = _HEADER if status is None else (*_HEADER, "STATUS")
    return render_table(header, rows, _RIGHT)


def _row(
    name: str, state: Projection | None, kind: DatasetKind | None, live: int | None
) -> tuple[str, ...]:
    if state is None:
        return (name, kind.name if kind else "-", *["-"] * (len(_HEADER) - 2))
    return (
        name,
        state.kind.name,
        f"{state.records:,}",
        "-" if live is None else f"{live:,}",
        size(state.data_bytes) if state.data_bytes else "-",
        str(state.blocks),
        str(state.watermark or "-"),
        state.head.short,
    )


def datasets_to_data(
    projections: Mapping[str, Projection],
    status: Mapping[str, str] | None = None,
    owners: Sequence[Ownership] = (),
    kinds: Mapping[str, DatasetKind] | None = None,
    live: Mapping[str, int | None] | None = None,
) -> list[dict[str, Any]]:
    """The same as plain values, with full hashes and ids, and whom to ask."""
    names = sorted({*projections, *(status or ())})
    return [
        {
            **_data(name, projections.get(name), (kinds or {}).get(name), (live or {}).get(name)),
            **({} if status is None else {"status": status.get(name)}),
            "owners": list(owners_of(owners, name)),
        }
        for name in names
    ]


def _data(
    name: str, state: Projection | None, kind: DatasetKind | None, live: int | None
) -> dict[str, Any]:
    kind = state.kind if state else kind
    return {
        "name": name,
        "id": str(state.dataset_id) if state else None,
        "kind": kind.name if kind else None,
        "records": state.records if state else 0,
        "live": live if state else 0,
        "bytes": state.data_bytes if state else 0,
        "blocks": state.blocks if state else 0,
        "watermark": str(state.watermark) if state and state.watermark else None,
        "head": str(state.head) if state else None,
    }


def render_deleted(deleted: Sequence[Deleted]) -> str:
    """Datasets in the bin with the time of their deletion, and how to restore one."""
    if not deleted:
        return "The bin is empty: no deleted dataset can be restored."
    rows = [(each.name, str(each.time), each.head.short) for each in deleted]
    table = render_table(("NAME", "DELETED", "HEAD"), rows, frozenset())
    return f"{table}\nTo restore one: odfbuild reset NAME --to HEAD"


def deleted_to_data(deleted: Sequence[Deleted]) -> list[dict[str, Any]]:
    """The same as plain values, with full hashes."""
    return [
        {"name": each.name, "deleted_at": str(each.time), "head": str(each.head)}
        for each in deleted
    ]


def render_remote(repository: str, listed: Sequence[ListedDataset]) -> str:
    """Datasets as a table, by name, and below it what is wrong with any."""
    if not listed:
        return f"There are no datasets in {repository}."
    rows = [
        (
            each.alias or each.name,
            "-" if each.blocks is None else f"{each.blocks:,}",
            "-" if each.updated is None else str(each.updated),
            "-" if each.head is None else each.head.short,
        )
        for each in sorted(listed, key=lambda each: each.alias or each.name)
    ]
    lines = [render_table(("NAME", "BLOCKS", "LAST BLOCK", "HEAD"), rows, frozenset({1}))]
    lines += [f"{each.name}: {each.problem}" for each in listed if each.problem is not None]
    if any(each.alias is not None for each in listed):
        lines.append(
            f"To pull one of these, write {repository}/did:odf:… with its identity from --json."
        )
    return "\n".join(lines)


def remote_to_data(listed: Sequence[ListedDataset]) -> list[dict[str, Any]]:
    """The same as plain values, with full hashes."""
    return [
        {
            "name": each.name,
            "alias": each.alias,
            "head": None if each.head is None else str(each.head),
            "blocks": each.blocks,
            "updated": None if each.updated is None else str(each.updated),
            "problem": None if each.problem is None else str(each.problem),
        }
        for each in listed
    ]
