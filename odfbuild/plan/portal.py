"""Whether a portal has records to take over. Pure."""

from __future__ import annotations

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.expected_input import ExpectedInput
from odfbuild.plan.model import Action, Pending, Reason, ReasonCode
from odfbuild.plan.stale import Input
from odfbuild.plan.verdict import IDLE, Verdict
from odfbuild.wording import count


def portal_verdict(name: str, state: Projection | None, source: Input) -> Verdict:
    """Decide about a portal whose source is decided already.

    Record by record it has what the source has, so offsets alone tell what is missing.
    """
    there, outlook = source.state, source.outlook
    published = 0 if state is None or state.last_offset is None else state.last_offset + 1
    present = 0 if there is None or there.last_offset is None else there.last_offset + 1
    if present < published:
        return _rewritten(name, source.name, published, present)
    reasons: list[Reason] = []
    if present > published:
        reasons.append(
            Reason(
                code=ReasonCode.INPUT_ADVANCED,
                message=f"{source.name} has {count(present - published, 'new record')}",
                input=source.name,
                from_offset=published - 1 if published else None,
                to_offset=present - 1,
            )
        )
    elif there is not None and there.watermark is not None and _is_behind(state, there):
        message = f"the watermark of {source.name} moved to {there.watermark}"
        reasons.append(Reason(code=ReasonCode.INPUT_ADVANCED, message=message, input=source.name))
    certain = bool(reasons) or bool(outlook and outlook.certain)
    if outlook is not None:
        reasons.append(
            Reason(
                code=ReasonCode.UPSTREAM_PLANNED,
                message=f"{source.name} will run"
                if outlook.certain
                else f"{source.name} will run if its source has new data",
                input=source.name,
                children=outlook.causes,
            )
        )
    if not reasons:
        return IDLE
    coming = 0 if outlook is None else outlook.records
    records = None if coming is None else present - published + coming
    exact = records is not None and (outlook is None or outlook.exact)
    return Verdict(
        action=Action.RUN if certain else Action.POLL,
        reasons=tuple(reasons),
        pending=Pending(records=records, bytes=0, exact=exact, read_most=0),
        outlook=ExpectedInput(certain=certain, records=records, exact=exact, causes=tuple(reasons)),
    )


def _is_behind(state: Projection | None, there: Projection) -> bool:
    if there.last_offset is None or there.watermark is None:
        return False
    return state is None or state.watermark is None or state.watermark < there.watermark


def _rewritten(name: str, of: str, published: int, present: int) -> Verdict:
    reason = Reason(
        code=ReasonCode.BREAKING,
        message=f"{of} has fewer records than {name} published",
        input=of,
    )
    return Verdict(
        reasons=(reason,),
        refusal=rewritten(name, of).noted(
            f"published: {count(published, 'record')}, there: {count(present, 'record')}"
        ),
    )


def rewritten(name: str, of: str) -> PlanError:
    """The error where a portal published records that its source does not have any more."""
    return PlanError(
        f"'{name}' cannot follow '{of}': its history is not the one that was published",
        code="E1653",
        dataset=name,
        help=f"restore the chain of '{of}', or publish under another name: what others pulled "
        "stays with them",
    )
