"""Push sources: choose the one for the data, and count data with an idempotency key once.

A key is recorded as the state of its source in the `AddData` that the data leads to, so anybody who
reads the chain sees it: `newSourceState: {sourceName, kind: odfbuild/idempotency-key, value}`.
Peers ignore states of a kind that they do not know.
Source: Open Data Fabric, `AddPushSource`, `SourceState`; reference behaviour, push ingest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddData, AddPushSource, DatasetKind, SourceState
from odfbuild.values import Value

IDEMPOTENCY_KEY = "odfbuild/idempotency-key"
REQUESTS = "odfbuild/requests"
"""Attribute of `AddData`: the requests with keys whose data were committed together."""


class Counted(Value, kw_only=True):
    """What came of a request with idempotency keys: how many records, and how many bad ones.

    `records` is `None` where they are all records of the block.
    """

    keys: tuple[str, ...]
    records: int | None
    skipped: int = 0


def attribute_of(requests: Iterable[Counted]) -> dict[str, Any]:
    """The attribute that records `requests`; nothing where none of them has a key."""
    told = [
        {"keys": list(each.keys), "records": each.records, "skipped": each.skipped}
        for each in requests
        if each.keys
    ]
    return {REQUESTS: told} if told else {}


def requests_in(event: AddData) -> tuple[Counted, ...]:
    """The requests that an event records; what has another form is not ours."""
    told = (event.extra or {}).get(REQUESTS)
    found = (_counted(each) for each in told) if isinstance(told, list | tuple) else ()
    return tuple(each for each in found if each is not None)


def _counted(told: Any) -> Counted | None:
    if not isinstance(told, Mapping):
        return None
    keys, records, skipped = (told.get(name) for name in ("keys", "records", "skipped"))
    if not isinstance(keys, list | tuple) or not all(isinstance(each, str) for each in keys):
        return None
    if not isinstance(records, int | None) or not isinstance(skipped, int):
        return None
    return Counted(keys=tuple(keys), records=records, skipped=skipped)


def choose_source(dataset: str, state: Projection, name: str | None) -> AddPushSource:
    """The push source called `name`, or the only one; `PlanError` when that is not clear."""
    sources = state.push_sources
    if not sources:
        raise _no_push_source(dataset, state)
    if name is not None and name not in sources:
        close = get_close_matches(name, sources, n=1)
        raise PlanError(
            f"'{dataset}' has no push source '{name}'",
            code="E0321",
            dataset=dataset,
            notes=(f"its push sources are: {', '.join(sorted(sources))}",),
            help=f"did you mean '{close[0]}'?" if close else "name one of them with --source",
        )
    if name is None and len(sources) > 1:
        raise PlanError(
            f"'{dataset}' has several push sources, and none is named",
            code="E0321",
            dataset=dataset,
            notes=(f"they are: {', '.join(sorted(sources))}",),
            help="name one of them with --source",
        )
    return sources[name] if name is not None else next(iter(sources.values()))


def key_state(source: AddPushSource, key: str) -> SourceState:
    """The state that records data with that key."""
    return SourceState(source_name=source.source_name, kind=IDEMPOTENCY_KEY, value=key)


def _no_push_source(dataset: str, state: Projection) -> PlanError:
    if state.kind is DatasetKind.Derivative:
        reason = "it is computed from other datasets"
    elif state.polling_source is not None:
        reason = "it polls its source: `odfbuild apply` ingests what is new"
    else:
        reason = "its chain has no source at all"
    return PlanError(
        f"'{dataset}' has no push source",
        code="E0320",
        dataset=dataset,
        notes=(reason,),
        help="add a step `kind: AddPushSource` to the definition of a root without polling source, "
        "then run `odfbuild apply`",
    )
