"""A difference of records as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from odfbuild.inspect.data_diff.model import Comparison, DataDiff, Distribution
from odfbuild.report.errors import error_to_data
from odfbuild.report.records.data_diff.view import views


def data_diff_to_data(found: Comparison) -> dict[str, Any]:
    """All of it; `words` are the sentences of the other forms."""
    return {
        "old": found.old,
        "new": found.new,
        "notes": list(found.notes),
        "datasets": [
            {**_dataset(each), "words": [seen.summary, *seen.drift]}
            for each, seen in zip(found.diffs, views(found), strict=True)
        ],
        "same": list(found.same),
        "errors": [data for each in found.errors for data in error_to_data(each)],
    }


def _dataset(found: DataDiff) -> dict[str, Any]:
    return {
        "name": found.dataset,
        "old": found.old,
        "new": found.new,
        "key": None if found.key is None else asdict(found.key),
        "records": {"old": found.old_records, "new": found.new_records, "common": found.common},
        "added": found.added,
        "removed": found.removed,
        "changed": found.changed,
        "columns": [asdict(each) for each in found.rates],
        "schema": [
            {name: value for name, value in asdict(each).items() if value is not None}
            for each in found.schema
        ],
        "drift": [
            {
                "column": each.column,
                "shifts": list(each.shifts),
                "old": _distribution(each.old),
                "new": _distribution(each.new),
            }
            for each in found.drift
        ],
        "samples": [asdict(each) for each in found.samples],
        "slices_not_read": found.unread,
        "notes": list(found.notes),
    }


def _distribution(of: Distribution) -> dict[str, Any]:
    top = [{"value": value, "records": many} for value, many in of.top]
    quantiles = None if of.quantiles is None else list(of.quantiles)
    return {**asdict(of), "top": top, "quantiles": quantiles}
