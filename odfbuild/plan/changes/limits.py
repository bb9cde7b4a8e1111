"""Steps that read more than the policies of a project let them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from odfbuild.errors import Location, PlanError
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.model import Action, DatasetPlan, Pending, Reason, ReasonCode
from odfbuild.plan.ways import Way
from odfbuild.project.model import Definition
from odfbuild.project.settings.policy import Limits, Policy, limits_of
from odfbuild.wording import did_you_mean

_BUSY = frozenset({Action.RUN, Action.POLL})


def refused_by_limits(
    made: DatasetPlan, policies: Sequence[Policy], unlimited: Collection[str], place: Location
) -> Diff | None:
    """No difference but the refusal of a step that reads too much; `None` where it may run."""
    if not policies or made.pending is None or _BUSY.isdisjoint(made.actions):
        return None
    if made.name.lower() in unlimited:
        return None
    limits = limits_of(policies, made.name)
    refusal = _refused(made, made.pending, limits, policies, place) if limits else None
    if refusal is None:
        return None
    reason = Reason(code=ReasonCode.POLICY_LIMIT, message=refusal.message)
    return Diff(reasons=(reason,), refusal=refusal)


def _refused(
    made: DatasetPlan,
    pending: Pending,
    limits: Limits,
    policies: Sequence[Policy],
    place: Location,
) -> PlanError | None:
    way = pending.computation
    consent = f"let it, this once: --allow read:{made.name}"
    notes = (way.why,) if way is not None and way.why else ()
    help = f"{way.help}; or {consent}" if way is not None and way.help else consent
    at = way.place if way is not None and way.place is not None else place
    if limits.incremental is not None and way is not None and way.may_read_all:
        said = _entry(policies, limits.incremental, "incremental: required")
        verb = "may be" if way.way is Way.AT_RUN else "is"
        total = "all records" if way.total is None else f"all {way.total:,} records"
        return PlanError(
            f"the step of '{made.name}' {verb} computed over {total} of its inputs",
            code="E0366",
            location=at,
            notes=(*notes, said),
            help=help,
            dataset=made.name,
        )
    for limit, key, found, unit, code in (
        (limits.max_records, "maxRecords", _expected_records(pending), "records", "E0367"),
        (limits.max_read, "maxRead", _expected_bytes(pending), "bytes", "E0368"),
    ):
        if limit is not None and found is not None and found > limit[0]:
            said = _entry(policies, limit[1], key)
            return PlanError(
                f"the step of '{made.name}' reads {found:,} {unit}, and may read {limit[0]:,}",
                code=code,
                location=at,
                notes=(*notes, said),
                help=help,
                dataset=made.name,
            )
    return None


def with_limits(
    made: DatasetPlan, policies: Sequence[Policy], unlimited: Collection[str]
) -> DatasetPlan:
    """A plan of which the run, too, keeps to what policies let it read."""
    way = made.pending.computation if made.pending is not None else None
    if not policies or made.pending is None or way is None or made.name.lower() in unlimited:
        return made
    limits = limits_of(policies, made.name)
    most = limits.max_records[0] if limits.max_records is not None else None
    way = replace(way, most_records=most, never_in_full=limits.incremental is not None)
    return replace(made, pending=replace(made.pending, computation=way))


def _expected_records(pending: Pending) -> int | None:
    """How many records a run reads as far as is known; at least the new ones in parts."""
    way = pending.computation
    if way is not None and way.way in (Way.KEYS, Way.KEPT):
        return pending.records
    return pending.read_least if pending.read_most is None else pending.read_most


def _expected_bytes(pending: Pending) -> int | None:
    return pending.bytes if pending.read_bytes is None else pending.read_bytes


def _entry(policies: Sequence[Policy], number: int, said: str) -> str:
    patterns = ", ".join(f"`{each}`" for each in policies[number].match)
    return f"`{said}` holds for {patterns} in odfbuild.yaml"


def check_reads(requests: Iterable[Consent], definitions: Iterable[Definition]) -> frozenset[str]:
    """Names in lower case of what may read more than policies let it; raises `PlanError` E0369."""
    requests = tuple(requests)
    if not requests:
        return frozenset()
    known = {each.folded: each.name for each in definitions}
    for each in requests:
        if each.readers or each.name.lower() not in known:
            names = list(known.values())
            raise PlanError(
                f"'read:{each.name}{'+' * each.readers}' names no dataset of this project",
                code="E0369",
                dataset=each.name,
                help=did_you_mean(each.name, names, "`odfbuild ls` lists all datasets"),
            )
    return frozenset(each.name.lower() for each in requests)
