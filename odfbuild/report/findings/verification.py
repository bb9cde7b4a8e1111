"""What verification found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.report.errors import see
from odfbuild.report.forms.words import paint
from odfbuild.report.outcome import LISTED
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.inspect.verify.excused import Excuse
    from odfbuild.inspect.verify.executors import ByExecutors
    from odfbuild.inspect.verify.finding import Finding
    from odfbuild.inspect.verify.reproduce import Reproduction
    from odfbuild.inspect.verify.signatures import Signature


def render_verdict(names: Sequence[str], verdict: Verdict, *, color: bool = False) -> str:
    """Findings, how many datasets are whole, and who signed those that others own."""
    again = verdict.reproduction
    if again is not None and verdict.unchecked and not again.steps:
        again = None  # steps there were, but none that could be recomputed
    text = render_findings(names, verdict.findings, again, color=color)
    of_others = [each for each in verdict.signatures if each.statement or each.owner]
    listed = [each for each in of_others if len(of_others) <= LISTED or not each.is_complete]
    lines = [f"  {each.dataset}: {_signed(each)}" for each in listed]
    if len(listed) < len(of_others):
        rest = count(len(of_others) - len(listed), "other dataset")
        lines.append(f"  {rest}: signed with their keys up to their heads")
    lines += [
        f"  {each.dataset} was not recomputed: {_lacking(each)}" for each in verdict.unchecked
    ]
    lines += [f"  {excuse_line(each)}" for each in verdict.excused]
    if verdict.executors is not None:
        lines.append(f"  {_by_executors(verdict.executors)}")
    return "\n".join([text, *lines])


def _by_executors(done: ByExecutors) -> str:
    """What executors did, and which datasets have steps that they did not recompute."""
    here = dict(done.steps_here)
    objects = count(done.objects + done.objects_here, "data object")
    steps = count(done.steps + sum(here.values()), "step")
    text = f"executors checked {done.objects:,} of {objects}, and recomputed {done.steps:,} of "
    return f"{text}{steps}" + (f"; recomputed here: {', '.join(here)}" if here else "")


def excuse_line(each: Excuse) -> str:
    """What cannot be checked, and whose statement says why."""
    if each.objects:
        what = f"{count(each.objects, 'object')} with {count(each.records, 'record')} withdrawn"
    else:
        what = f"{count(each.steps, 'step')} not recomputed"
    reason = "withdrew records" if each.kind == "Withdrawal" else "erased subjects"
    of = "" if each.of == each.dataset else f" of {each.of}"
    if each.objects:
        return f"{each.dataset}: {what} by the statement of {each.time}, {each.by}: {each.why}"
    return f"{each.dataset}: {what}: the statement of {each.time}{of} {reason}, {each.by}"


def _lacking(found: Finding) -> str:
    """What keeps a dataset from being recomputed here, and how to do it."""
    return f"{found.message}; help: {found.help}"


def _signed(found: Signature) -> str:
    said = found.statement
    if said is None:
        return "unsigned"
    signed = f"signed with its key up to block #{said.blocks - 1}"
    if found.since > 0:
        return f"{signed}, {said.time}; {count(found.since, 'later block')} unsigned"
    if found.since < 0:
        return f"{signed}, {said.time}; {count(-found.since, 'block')} of these not pulled yet"
    return f"{signed}, its head, {said.time}"


def render_findings(
    names: Sequence[str],
    findings: Sequence[Finding],
    reproduction: Reproduction | None = None,
    *,
    color: bool = False,
) -> str:
    """Each finding under its dataset with the way out, then how many datasets are whole.

    Without `reproduction` only integrity was looked at.
    """
    checked = f"Verified {count(len(names), 'dataset')}"
    again = _again(reproduction)
    broken = _broken(findings)
    if not broken:
        return f"{checked}: all blocks and objects are intact{again}."
    lines: list[str] = []
    for name in broken:
        lines.append(f"  {paint('!', 'red', on=color)} {name}")
        for finding in findings:
            if finding.dataset == name:
                lines += [f"      {line}" for line in _finding(finding)]
    codes = dict.fromkeys(finding.code for finding in findings)
    lines += [f"      see: {see(code)}" for code in codes]
    return "\n".join([*lines, "", f"{checked}: {len(broken)} failed{again}."])


def _again(reproduction: Reproduction | None) -> str:
    """What was recomputed; the findings give the result."""
    if reproduction is None:
        return ""
    if not reproduction.steps:
        return "; no step had to be recomputed"
    steps = count(reproduction.steps, "step")
    derivatives = count(reproduction.derivatives, "derivative")
    if reproduction.findings:
        return f"; recomputed {steps} of {derivatives}"
    return f"; recomputed {steps} of {derivatives}, all records are identical"


def _finding(finding: Finding) -> list[str]:
    lines = [f"error[{finding.code}]: {finding.message}"]
    if finding.block is not None:
        number = "" if finding.sequence_number is None else f" #{finding.sequence_number}"
        lines.append(f"  block{number} {finding.block}")
    if finding.offset is not None:
        lines.append(f"  first difference at offset {finding.offset}")
        lines += [
            f"    {each.column}: committed {each.recorded}, recomputed {each.replayed}"
            for each in finding.differences
        ]
    if finding.path is not None:
        lines.append(f"  file {finding.path}")
    return [*lines, f"  help: {finding.help}"]


def findings_to_data(
    names: Sequence[str], findings: Sequence[Finding], reproduction: Reproduction | None = None
) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": list(names),
        "damaged": _broken(findings),
        "steps_done_again": reproduction.steps if reproduction else None,
        "findings": [_finding_to_data(finding) for finding in findings],
    }


def _finding_to_data(finding: Finding) -> dict[str, Any]:
    return {
        "dataset": finding.dataset,
        "code": finding.code,
        "message": finding.message,
        "help": finding.help,
        "block": str(finding.block) if finding.block else None,
        "sequence_number": finding.sequence_number,
        "path": str(finding.path) if finding.path else None,
        "offset": finding.offset,
        "differences": [
            {"column": each.column, "recorded": each.recorded, "replayed": each.replayed}
            for each in finding.differences
        ],
    }


def verdict_to_data(names: Sequence[str], verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    return {
        **findings_to_data(names, verdict.findings, verdict.reproduction),
        "signatures": [_signature_to_data(each) for each in verdict.signatures],
        "unchecked": [_finding_to_data(each) for each in verdict.unchecked],
        **({"excused": list(map(_excuse_to_data, verdict.excused))} if verdict.excused else {}),
        **({"executors": _executors_to_data(verdict.executors)} if verdict.executors else {}),
    }


def _executors_to_data(done: ByExecutors) -> dict[str, Any]:
    return {
        "objects": done.objects,
        "objects_here": done.objects_here,
        "steps": done.steps,
        "steps_here": dict(done.steps_here),
    }


def _excuse_to_data(each: Excuse) -> dict[str, Any]:
    return {
        "dataset": each.dataset,
        "statement_of": each.of,
        "kind": each.kind,
        "time": str(each.time),
        "by": each.by,
        "why": each.why,
        "steps": each.steps,
        "objects": each.objects,
        "records": each.records,
    }


def _signature_to_data(found: Signature) -> dict[str, Any]:
    said = found.statement
    return {
        "dataset": found.dataset,
        "owner": found.owner,
        "signed": found.is_complete,
        "signer": said.dataset_id.did_key if said is not None else None,
        "block": str(said.head) if said is not None else None,
        "blocks": said.blocks if said is not None else None,
        "time": str(said.time) if said is not None else None,
        "blocks_since": found.since,
    }


def _broken(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.dataset for finding in findings))
