"""A plan as plain values, and its digest.

The document holds what a reviewer approves and nothing that differs from one making of the same
plan to the next: no time, no version of the tool.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_data
from odfbuild.plan.changes.classify import category
from odfbuild.plan.engines import translation_of
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    EventChange,
    Pending,
    Plan,
    Reason,
)
from odfbuild.plan.refusal import as_data, place_to_data, refusal_to_data

FORMAT_VERSION = "1.0"
"""Grows by a minor for additions, which readers must ignore, and by a major for anything else."""

UNCOVERED = frozenset(
    {"plan_digest", "git", "created_at", "tool_version", "windows", "news", "tables"}
)
"""Keys of a plan's JSON form that the digest does not cover: who made it, when, and from where.

And what is told only where the data is, or what was asked of others: repositories, tables.
"""


def plan_document(plan: Plan) -> dict[str, Any]:
    """Everything that the digest covers."""
    return {
        "format_version": FORMAT_VERSION,
        "project": plan.project,
        "env": plan.env,
        **({"branch": plan.branch.to_data()} if plan.branch else {}),
        "applyable": plan.applyable,
        "complete": plan.complete,
        "errored": not plan.applyable,
        "datasets": [_dataset(d) for d in plan.datasets if Action.FORGET not in d.actions],
        "forgotten": [
            {
                "id": str(d.id),
                "name": d.name,
                "kind": d.kind.name,
                "head": str(d.expected_head),
                "reasons": dataset_reasons(d),
            }
            for d in plan.datasets
            if Action.FORGET in d.actions
        ],
        "external": as_data(plan.external),
        "publications": as_data(plan.publications),
        **({"rewrites": list(plan.rewrites)} if plan.rewrites else {}),
        **({"retention": as_data(plan.retention)} if plan.retention else {}),
        "pins": {name: _text(head) for name, head in plan.pins},
        "drift": [each.to_data() for each in plan.drift],
        "summary": summary(plan),
        **({} if plan.promotes is None else {"promotes": plan.promotes}),
    }


def plan_digest(plan: Plan) -> str:
    """`sha256:…` over the canonical JSON of the document: sorted keys, no spaces, UTF-8."""
    return digest_of(plan_document(plan))


def digest_of(document: dict[str, Any]) -> str:
    """The digest of a document that `plan_document` made."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def summary(plan: Plan) -> dict[str, int]:
    """The counts of the closing line, and how many are left to polling, refused and orphaned."""
    # Datasets differ in few combinations of actions.
    counts = Counter(dataset.actions for dataset in plan.datasets)

    def having(*actions: Action) -> int:
        return sum(n for found, n in counts.items() if not set(actions).isdisjoint(found))

    moved = {} if plan.promotes is None else {"promote": having(Action.PROMOTE)}
    return {
        **moved,
        "create": having(Action.CREATE),
        "change": having(Action.APPEND, Action.RENAME),
        "run": having(Action.RUN),
        "reset": having(Action.REBUILD),
        "delete": having(Action.DELETE),
        "poll": having(Action.POLL),
        "refuse": having(Action.REFUSE),
        "forget": having(Action.FORGET),
    }


def dataset_reasons(dataset: DatasetPlan) -> list[dict[str, Any]]:
    """The reasons of a dataset with their evidence, as the document has them."""
    return [_reason(reason) for reason in dataset.reasons]


def pending_data(pending: Pending | None) -> dict[str, Any] | None:
    """How much is waiting and will be read, as the document has it."""
    if pending is None:
        return None
    return {
        "records": pending.records,
        "bytes": pending.bytes,
        "exact": pending.exact,
        "files": list(pending.files),
        "compared": pending.compared,
        "reads": {
            "least": pending.read_least,
            "most": pending.read_most,
            "bytes": pending.read_bytes,
        },
        "computation": pending.computation.to_data() if pending.computation else None,
    }


def _dataset(dataset: DatasetPlan) -> dict[str, Any]:
    return {
        "id": str(dataset.id) if dataset.id else None,
        "name": dataset.name,
        "renamed_from": dataset.renamed_from,
        "kind": dataset.kind.name,
        "actions": [action.name.lower() for action in dataset.actions],
        "category": category(dataset),
        "expected_head": _text(dataset.expected_head),
        "inputs": list(dataset.inputs),
        "source": place_to_data(dataset.location),
        "reasons": dataset_reasons(dataset),
        "events": [_event(dataset, change) for change in dataset.changes],
        "records_under_old_query": dataset.records_under_old_query,
        "records_to_correct": dataset.records_to_correct,
        "eras": as_data(dataset.eras),
        "translation": _translation(dataset),
        "pending": pending_data(dataset.pending),
        "mode": dataset.mode and {"mode": dataset.mode.mode.value, "reason": dataset.mode.reason},
        "affected_columns": as_data(dataset.columns),
        "refusal": refusal_to_data(dataset.refusal),
        **({"checked_against": [*dataset.checked_against]} if dataset.checked_against else {}),
        **({} if dataset.promoted is None else {"promoted": as_data(dataset.promoted)}),
    }


def _translation(dataset: DatasetPlan) -> list[dict[str, Any]] | None:
    """The Spark SQL that runs for a changed query of another engine, step by step."""
    found = translation_of(dataset)
    if found is None:
        return None
    return [{"alias": step.alias, "query": step.query} for step in found.queries or ()]


def _reason(reason: Reason) -> dict[str, Any]:
    plain: dict[str, Any] = {"code": reason.code.value, "message": reason.message}
    if reason.input is not None:
        plain["input"] = reason.input
    if reason.from_block is not None or reason.to_block is not None:
        plain["from"] = {"block": _text(reason.from_block), "offset": reason.from_offset}
        plain["to"] = {"block": _text(reason.to_block), "offset": reason.to_offset}
    plain["children"] = [_reason(child) for child in reason.children]
    return plain


def _event(dataset: DatasetPlan, change: EventChange) -> dict[str, Any]:
    return {
        "kind": change.after.KIND,
        "before": to_data(change.before),
        "after": to_data(change.after),
        "source": place_to_data(change.location or dataset.location),
    }


def news_data(plan: Plan) -> list[dict[str, Any]] | None:
    """What repositories said of datasets of others; `None`: they were not asked."""
    if plan.news is None:
        return None
    return [
        {
            "name": each.dataset,
            "head": _text(each.head),
            "blocks": each.blocks,
            "records": each.records,
            "error": refusal_to_data(each.error),
        }
        for each in plan.news
    ]


def _text(block: Multihash | None) -> str | None:
    return None if block is None else str(block)
