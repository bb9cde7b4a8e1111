"""Whether a root dataset has something to ingest.

Input: what probing its source found and whether it ever ran. Output: what to do, why, how much.
Reads no files and never the network: a remote source is left to apply (`POLL`).
"""

from __future__ import annotations

from dataclasses import replace

from odfbuild.errors import PlanError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetPollingSource
from odfbuild.plan.expected_input import ExpectedInput
from odfbuild.plan.model import Action, Pending, Reason, ReasonCode
from odfbuild.plan.verdict import IDLE, Verdict
from odfbuild.sql.bounds import never_adds_records

NOT_PROBED = SourceFacts("unknown", message="apply will look at the source")
"""Stands for a source about which nothing was gathered."""

_UNCHANGED = Verdict(
    reasons=(Reason(code=ReasonCode.SOURCE_UNCHANGED, message="the source has no new data"),)
)

_BY_CLOCK = Reason(
    code=ReasonCode.WATERMARK_DUE, message="its watermark follows the clock and has to move"
)

_NEVER_RAN = Reason(code=ReasonCode.NEVER_RUN, message="it was never ingested")


def root_verdict(
    name: str,
    source: SetPollingSource | None,
    projection: Projection | None,
    facts: SourceFacts,
) -> Verdict:
    """Decide about a root dataset; one without a polling source waits for `ingest` and is idle."""
    if source is None:
        return IDLE
    if facts.status == "missing":
        return _missing(name, facts)
    if facts.status == "unchanged":
        if not facts.message:
            return _UNCHANGED
        return Verdict(reasons=(_reason(ReasonCode.SOURCE_UNCHANGED, facts.message),))
    ever_ran = projection is not None and projection.ever_ran
    pending = _pending(source, projection, facts)
    reasons: tuple[Reason, ...] = () if ever_ran else (_NEVER_RAN,)
    if facts.status == "news":
        message = facts.message or "the source has new data"
        reasons += (_reason(ReasonCode.SOURCE_HAS_NEWS, message),)
    elif facts.status == "unanswered":
        reasons += (_reason(ReasonCode.SOURCE_NOT_ANSWERED, facts.message),)
    else:
        message = facts.message or NOT_PROBED.message
        reasons += (_reason(ReasonCode.SOURCE_NOT_CHECKED, message),)
    # A source that was never read has news, whatever it holds.
    certain = facts.status == "news" or not ever_ran
    return Verdict(
        action=Action.RUN if certain else Action.POLL,
        reasons=reasons,
        pending=pending,
        outlook=ExpectedInput(
            certain=certain,
            records=_most(source, projection, facts),
            exact=pending.exact,
            causes=reasons,
        ),
    )


def with_watermark(verdict: Verdict) -> Verdict:
    """The decision about a root whose watermark the clock moves, whatever its source holds."""
    known = verdict.reasons if verdict.action is not None else ()
    reasons = (*known, _BY_CLOCK)
    outlook = verdict.outlook or ExpectedInput(certain=True, records=0, exact=True, causes=reasons)
    return Verdict(
        action=Action.RUN,
        reasons=reasons,
        pending=verdict.pending or Pending(records=0, bytes=0),
        outlook=replace(outlook, certain=True, exact=outlook.exact and outlook.certain),
    )


def _pending(
    source: SetPollingSource, projection: Projection | None, facts: SourceFacts
) -> Pending:
    # Only appending keeps every record; a query in between may still drop some.
    keeps_all = source.merge.KEEPS_ALL and source.preprocess is None
    return Pending(
        records=facts.records,
        bytes=facts.bytes,
        exact=facts.exact and keeps_all and facts.records is not None,
        files=facts.files,
        compared=projection is not None and source.merge.IS_WHOLE,
        read_least=facts.records or 0 if facts.exact else 0,
        read_most=facts.records,
    )


def _most(
    source: SetPollingSource, projection: Projection | None, facts: SourceFacts
) -> int | None:
    """How many records there will be more, at most."""
    prepared = source.preprocess
    if facts.records is None or (prepared and not never_adds_records(prepared, ("input",))):
        return None
    own = projection.records if projection else 0
    return source.merge.most(facts.records, len(facts.files), own)


def _missing(name: str, facts: SourceFacts) -> Verdict:
    message = facts.message or "the file does not exist"
    refusal = PlanError(
        f"the source of '{name}' is missing: {message}",
        code="E0307",
        help="put the file there, or correct `fetch` in the definition",
        dataset=name,
    )
    return Verdict(reasons=(_reason(ReasonCode.SOURCE_MISSING, message),), refusal=refusal)


def _reason(code: ReasonCode, message: str) -> Reason:
    return Reason(code=code, message=message)
