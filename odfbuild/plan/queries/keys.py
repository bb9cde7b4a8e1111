"""Key columns of a merge strategy that the source certainly does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfbuild.errors import IngestError
from odfbuild.odf.model import AddPushSource, SetPollingSource
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.plan.columns.evolution import result_of_source
from odfbuild.plan.places import Path
from odfbuild.wording import did_you_mean


def unknown_keys(
    event: SetPollingSource | AddPushSource, dataset: str, vocab: Vocabulary
) -> Iterator[tuple[Path, IngestError]]:
    """An error for each such column, with its path in the event."""
    merge = event.merge
    result = result_of_source(event, meanings=False) if merge.key else None
    if result is None:
        return
    names = [column.name for column in result.columns]
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    # The event time may come from elsewhere; names of system columns get an underscore.
    known = [*names, vocab.event_time, *(f"_{name}" for name in names if name in system)]
    compared: Sequence[str] = getattr(merge, "compare_columns", None) or ()
    for role, listed in (("primaryKey", merge.key), ("compareColumns", compared)):
        for number, name in enumerate(listed):
            if name not in known:
                error = IngestError(
                    f"`merge.{role}` names the column '{name}', which the source does not have",
                    code="E0430",
                    dataset=dataset,
                    notes=(f"its columns are: {', '.join(names)}",),
                    help=did_you_mean(name, known, f"correct `merge.{role}`"),
                )
                yield ("merge", role, number), error
