"""Verify datasets: first integrity, then reproducibility of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from odfbuild.displayed import Displayed
from odfbuild.engine.contract import EngineFactory
from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.settings import EngineSettings
from odfbuild.errors import Code
from odfbuild.inspect.verify.excused import Excuse, withdrawn_from
from odfbuild.inspect.verify.executors import ByExecutors, executors_of
from odfbuild.inspect.verify.finding import Finding
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.inspect.verify.reproduce import (
    Extent,
    Reproduction,
    direct_inputs,
    inputs_ever,
    is_of_others,
    verify_reproducibility,
)
from odfbuild.inspect.verify.signatures import Signature, signatures
from odfbuild.inspect.verify.step_findings import NO_KEYS
from odfbuild.odf.model import TransformSql
from odfbuild.store.disposable import scratch_folder
from odfbuild.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Verdict(Displayed):
    """All findings, what was recomputed (`None`: only integrity was checked), who signed what.

    `unchecked` are steps of datasets of others whose inputs are not here, where nobody asked for
    just these datasets, and steps with personal columns where there are no keys: they are neither
    right nor wrong. `excused` is what their owners say is not there any more, or cannot be
    recomputed. `executors` is what these did, where there was something for them.
    """

    findings: tuple[Finding, ...]
    reproduction: Reproduction | None = None
    signatures: tuple[Signature, ...] = ()
    unchecked: tuple[Finding, ...] = ()
    excused: tuple[Excuse, ...] = ()
    executors: ByExecutors | None = None


def verify(
    workspace: Workspace,
    names: Sequence[str],
    *,
    logical: bool = False,
    extent: Extent | None = None,
    factory: EngineFactory | None = None,
    by: Callable[[TransformSql], str] | None = None,
    all_of_project: bool = False,
    settings: EngineSettings | None = None,
) -> Verdict:
    """Verify `names`: integrity, and reproducibility when there is a `factory` of engines.

    `by` names another version than the recorded one for a transformation. With `all_of_project`
    nobody asked for single datasets, so that those of others are checked as far as can be here.

    With `settings` of the engine, executors check and recompute what lies in the storage, where
    these settings let them.

    What steps have read has to be whole, too, so that the inputs of `names` are looked at. Damaged
    datasets, and those downstream of them, are not recomputed.
    """
    signed, wrong = signatures(workspace, names)
    if factory is None:
        found = (*verify_integrity(workspace, names, logical=logical), *wrong)
        return Verdict(found, None, signed, excused=_withdrawn(workspace, names, found))
    inputs = {name: inputs_ever(workspace, name) for name in names}
    with LazyEngine(factory) as engine:
        executors = executors_of(workspace, settings, engine.get)
        if any(inputs.values()):
            engine.warm_up()
        looked_at = [*names, *direct_inputs(names, inputs)]
        findings = verify_integrity(workspace, looked_at, logical=logical, executors=executors)
        damaged = {finding.dataset for finding in findings}
        whole = [name for name in names if not damaged & {name, *inputs[name]}]
        with scratch_folder(workspace.cache, "verify") as scratch:
            again = verify_reproducibility(
                workspace, whole, engine.get, scratch, extent, by, executors
            )
    without_keys = [each for each in again.findings if each.code == NO_KEYS]
    unchecked = tuple(
        each
        for each in again.findings
        if all_of_project
        and each.code == Code.INPUT_MISSING
        and is_of_others(workspace, each.dataset)
    )
    left = tuple(e for e in again.findings if e not in unchecked and e not in without_keys)
    # Those of one dataset lack the same: the first stands for all.
    unchecked += tuple({each.dataset: each for each in reversed(without_keys)}.values())
    again = replace(again, findings=left, steps=again.steps - len(without_keys))
    found = (*findings, *wrong, *again.findings)
    excused = (*_withdrawn(workspace, names, found), *again.excused)
    done = executors.done if executors else None
    return Verdict(found, again, signed, unchecked, excused, done)


def _withdrawn(
    workspace: Workspace, names: Sequence[str], wrong: Sequence[Finding]
) -> tuple[Excuse, ...]:
    """What the owners of datasets withdrew; nothing is told of those with something wrong."""
    damaged = {each.dataset for each in wrong}
    whole = (workspace.dataset(name) for name in names if name not in damaged)
    return tuple(excuse for store in whole for excuse in withdrawn_from(store))
