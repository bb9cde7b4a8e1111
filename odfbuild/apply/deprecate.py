"""Record that a newer release of the engine gives the same results as older ones.

Every step of a derivative is recomputed by the installed release. If all records are the same, a
`SetTransform` with the same queries and that release is appended. Source: Open Data Fabric, "Engine
Deprecation", which asks for a record and defines no event of its own for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfbuild.apply.definitions import by_another_engine
from odfbuild.engine.contract import EngineFactory
from odfbuild.inspect.verify.check import Verdict, verify
from odfbuild.inspect.verify.reproduce import inputs_ever
from odfbuild.odf.model import SetTransform
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.translate.named import NO_ENGINES, Engines
from odfbuild.sql.translate.runnable import release_for
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class Deprecated(Value, kw_only=True):
    """A derivative, the `releases` that its chain names beside the present one, and the outcome.

    `now` is the present one: that of the program which computes its queries, or of Spark.
    `reproduced`: the present release gives the same. `block` is the number of the block that says
    so, `None` where the chain named the present release already.
    """

    name: str
    releases: tuple[str, ...]
    now: str
    reproduced: bool
    block: int | None = None


def older_releases(
    workspace: Workspace, name: str, engine_version: str, engines: Engines = NO_ENGINES
) -> tuple[str, ...]:
    """Releases of the engine that a chain names, but for the present one; oldest first."""
    state = workspace.projection(name)
    if state is None or state.transform is None:
        return ()
    found = [
        block.event.transform
        for _, block in workspace.dataset(name).walk(state.head)
        if isinstance(block.event, SetTransform)
    ]
    older = [
        each.version
        for each in reversed(found)
        if each.version not in (None, release_for(each, engine_version, engines))
    ]
    return tuple(dict.fromkeys(filter(None, older)))


def deprecate(
    workspace: Workspace,
    names: Sequence[str],
    factory: EngineFactory,
    engine_version: str,
    waiting: Waiting = NOT_WAITING,
    engines: Engines = NO_ENGINES,
) -> tuple[tuple[Deprecated, ...], Verdict]:
    """Verify those of `names` that older releases computed, and record what could be reproduced.

    Raises `StaleHeadError` if another process has locked one of them.
    """
    releases = {name: older_releases(workspace, name, engine_version, engines) for name in names}
    todo = [name for name in names if releases[name]]
    if not todo:
        return (), Verdict(())
    with workspace.claim(todo, waiting) as claim:
        for name in todo:
            if name in claim.held:
                raise held_elsewhere(name, claim.held[name])
        verdict = verify(
            workspace,
            todo,
            factory=factory,
            by=lambda transform: release_for(transform, engine_version, engines),
        )
        wrong = {finding.dataset for finding in verdict.findings}
        done = []
        for name in todo:
            # What reads damage was not done again.
            reproduced = not wrong & {name, *inputs_ever(workspace, name)}
            found = Deprecated(
                name=name,
                releases=releases[name],
                now=_present(workspace, name, engine_version, engines),
                reproduced=reproduced,
            )
            if reproduced:
                found = replace(found, block=_record(workspace, name, engine_version, engines))
            done.append(found)
    return tuple(done), verdict


def _present(workspace: Workspace, name: str, engine_version: str, engines: Engines) -> str:
    state = workspace.projection(name)
    if state is None or state.transform is None:
        raise AssertionError("releases were found of its transformation")
    return release_for(state.transform.transform, engine_version, engines)


def _record(workspace: Workspace, name: str, engine_version: str, engines: Engines) -> int | None:
    state = workspace.projection(name)
    event = by_another_engine(state.transform, engine_version, engines) if state else None
    if state is None or event is None:
        return None
    moment = max(Timestamp.now(), state.system_time)
    workspace.dataset(name).append(state.head, [event], moment)
    return state.blocks
