"""Stop the process that holds the lock of a dataset."""

from __future__ import annotations

import os
import signal
import time

from odfbuild.errors import PlanError
from odfbuild.store.lock_holders import LockHolder, this_host
from odfbuild.store.workspace import Workspace

EXIT_HELD = 9
_LOOK_SECONDS = 0.1


def holder_of(workspace: Workspace, name: str) -> LockHolder | None:
    """The other process that works on a dataset, if one does."""
    return next(iter(workspace.holders([name])), None)


def stop_holder(
    workspace: Workspace, name: str, holder: LockHolder, *, at_once: bool, wait: float
) -> None:
    """Ask a process of this machine to stop, and wait up to `wait` seconds until it let go.

    It finishes what it has begun, as after Ctrl-C; `at_once` ends it, as SIGTERM does. `PlanError`
    E0347 when it is of another machine, of another user, or does not stop in time.
    """
    if not holder.is_here:
        where = holder.host if holder.host not in ("", this_host()) else "another machine"
        raise _not_broken(
            name,
            f"{holder} holds it, which cannot be stopped from here",
            f"run `odfbuild lock break {name}` on {where}; or, when that is gone, "
            f"`odfbuild lock break {name} --forget`",
        )
    try:
        os.kill(holder.pid, signal.SIGTERM if at_once else signal.SIGINT)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise _not_broken(
            name, f"{holder} belongs to another user", "ask that user, or run this as that user"
        ) from None
    deadline = time.monotonic() + wait
    while _still_holds(workspace, name, holder):
        if time.monotonic() > deadline:
            more = "wait" if at_once else "wait, or end it at once with --now"
            raise _not_broken(name, f"{holder} did not release it within {wait:g} seconds", more)
        time.sleep(_LOOK_SECONDS)


def _still_holds(workspace: Workspace, name: str, holder: LockHolder) -> bool:
    found = holder_of(workspace, name)
    return found is not None and found.pid == holder.pid


def _not_broken(name: str, why: str, help: str) -> PlanError:
    return PlanError(
        f"the lock of '{name}' was not broken: {why}",
        code="E0347",
        dataset=name,
        help=help,
        exit_code=EXIT_HELD,
    )
