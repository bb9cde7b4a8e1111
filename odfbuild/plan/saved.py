"""A plan from its document: what was saved, reviewed and approved is what is applied.

The other direction is `document`; a plan that went through both is equal to the first in all that
apply and reports look at. Nothing is looked up: no definitions, no chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from odfbuild.errors import Location, PlanError
from odfbuild.odf.chain.projection import QueryEra
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, MetadataEvent
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import from_data
from odfbuild.plan.branch import InBranch
from odfbuild.plan.document import FORMAT_VERSION, UNCOVERED, digest_of
from odfbuild.plan.drift import ChainDrift
from odfbuild.plan.model import (
    Action,
    ColumnEffect,
    DatasetPlan,
    EventChange,
    News,
    Pending,
    PinnedDataset,
    Plan,
    Promoted,
    Publication,
    Reason,
    ReasonCode,
)
from odfbuild.plan.refusal import from_data as plain_from_data
from odfbuild.plan.refusal import place_from_data, refusal_from_data
from odfbuild.plan.retention import DueWithdrawal
from odfbuild.plan.tables import TablePlan
from odfbuild.plan.ways import Computation
from odfbuild.plan.windows import WindowRecords
from odfbuild.sql.mode import Choice, Mode
from odfbuild.values import Value

_V = TypeVar("_V", bound=Value)
_NEW_PLAN = "make it again with `odfbuild plan -o FILE`"


class SavedPlan(Value, kw_only=True):
    """A plan with what its file says about it. `git` is `{"commit": …, "dirty": …}` if known."""

    plan: Plan
    digest: str
    created_at: str
    tool_version: str
    git: Mapping[str, Any] | None


def read_plan(data: Any, name: str) -> SavedPlan:
    """The plan of a document; `name` is what errors call it.

    Raises `PlanError` E0360 when it is not a plan or not of a format that is known, E0361 when it
    is not the one whose digest it carries.
    """
    _check_format(data, name)
    document = {key: value for key, value in data.items() if key not in UNCOVERED}
    if digest_of(document) != data.get("plan_digest"):
        raise PlanError(
            f"{name} was changed after it was saved: its digest does not match",
            code="E0361",
            notes=(f"it says {data.get('plan_digest')}", f"it holds {digest_of(document)}"),
            help=_NEW_PLAN,
        )
    try:
        windows = tuple(map(WindowRecords.from_data, data.get("windows", ())))
        tables = _each(TablePlan, data.get("tables"))
        news = _news(data.get("news"))
        plan = replace(_plan(document), windows=windows, news=news, tables=tables)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _no_plan(name, f"it cannot be read: {error!r}") from None
    return SavedPlan(
        plan=plan,
        digest=data["plan_digest"],
        created_at=str(data.get("created_at")),
        tool_version=str(data.get("tool_version")),
        git=data.get("git"),
    )


def _check_format(data: Any, name: str) -> None:
    version = data.get("format_version") if isinstance(data, dict) else None
    if not isinstance(version, str):
        raise _no_plan(name, "it has no `format_version`")
    if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise _no_plan(name, f"its format is {version}, and this version reads {FORMAT_VERSION}")


def _no_plan(name: str, why: str) -> PlanError:
    return PlanError(f"{name} is not a plan: {why}", code="E0360", help=_NEW_PLAN)


def _plan(document: Mapping[str, Any]) -> Plan:
    datasets = [_dataset(data) for data in document["datasets"]]
    forgotten = [
        DatasetPlan(
            name=data["name"],
            kind=DatasetKind[data["kind"]],
            id=DatasetId.parse(data["id"]),
            expected_head=Multihash.parse(data["head"]),
            actions=(Action.FORGET,),
            reasons=tuple(map(_reason, data["reasons"])),
        )
        for data in document["forgotten"]
    ]
    return Plan(
        project=document["project"],
        datasets=(*datasets, *forgotten),
        complete=document["complete"],
        env=document["env"],
        branch=InBranch.of(document.get("branch")),
        pins=tuple((name, _block(head)) for name, head in document["pins"].items()),
        drift=_each(ChainDrift, document["drift"]),
        external=_each(PinnedDataset, document.get("external")),
        publications=_each(Publication, document.get("publications")),
        rewrites=tuple(document.get("rewrites", ())),
        retention=_each(DueWithdrawal, document.get("retention")),
        promotes=document.get("promotes"),
    )


def _news(found: Any) -> tuple[News, ...] | None:
    if found is None:
        return None
    return tuple(
        News(
            dataset=each["name"],
            head=_block(each["head"]),
            blocks=each["blocks"],
            records=each["records"],
            error=refusal_from_data(each["name"], each["error"]),
        )
        for each in found
    )


def _dataset(data: Mapping[str, Any]) -> DatasetPlan:
    place = place_from_data(data["source"])
    return DatasetPlan(
        name=data["name"],
        renamed_from=data["renamed_from"],
        kind=DatasetKind[data["kind"]],
        id=DatasetId.parse(data["id"]) if data["id"] else None,
        expected_head=_block(data["expected_head"]),
        actions=tuple(Action[action.upper()] for action in data["actions"]),
        reasons=tuple(map(_reason, data["reasons"])),
        changes=tuple(_change(event, place) for event in data["events"]),
        pending=_pending(data["pending"]),
        records_under_old_query=data["records_under_old_query"],
        records_to_correct=data.get("records_to_correct"),
        eras=_each(QueryEra, data["eras"]),
        inputs=tuple(data["inputs"]),
        checked_against=tuple(data.get("checked_against", ())),
        planned_mode=_mode(data.get("mode")),
        columns=_optional(ColumnEffect, data["affected_columns"]),
        location=place,
        refusal=refusal_from_data(data["name"], data["refusal"]),
        promoted=_optional(Promoted, data.get("promoted")),
    )


def _mode(data: Mapping[str, str] | None) -> Choice | None:
    return Choice(Mode(data["mode"]), data["reason"]) if data else None


def _change(data: Mapping[str, Any], place: Location | None) -> EventChange:
    """A change; a place that is only the dataset's tells nothing about the event."""
    before, after = (
        None if each is None else from_data(MetadataEvent, each)
        for each in (data["before"], data["after"])
    )
    if after is None:
        raise ValueError("an event without `after`")
    own = place_from_data(data["source"])
    return EventChange(before=before, after=after, location=None if own == place else own)


def _reason(data: Mapping[str, Any]) -> Reason:
    start, end = data.get("from") or {}, data.get("to") or {}
    return Reason(
        code=ReasonCode(data["code"]),
        message=data["message"],
        input=data.get("input"),
        from_block=_block(start.get("block")),
        from_offset=start.get("offset"),
        to_block=_block(end.get("block")),
        to_offset=end.get("offset"),
        children=tuple(map(_reason, data["children"])),
    )


def _pending(data: Mapping[str, Any] | None) -> Pending | None:
    if data is None:
        return None
    return Pending(
        records=data["records"],
        bytes=data["bytes"],
        exact=data["exact"],
        files=tuple(data["files"]),
        compared=data["compared"],
        read_least=data["reads"]["least"],
        read_most=data["reads"]["most"],
        read_bytes=data["reads"].get("bytes"),
        computation=Computation.from_data(data.get("computation")),
    )


def _block(text: str | None) -> Multihash | None:
    return None if text is None else Multihash.parse(text)


def _each(cls: type[_V], data: Iterable[Any] | None) -> tuple[_V, ...]:
    return tuple(plain_from_data(cls, each) for each in data or ())


def _optional(cls: type[_V], data: Mapping[str, Any] | None) -> _V | None:
    return None if data is None else plain_from_data(cls, data)
