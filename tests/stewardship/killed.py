"""Work that is killed at its durable writes, one after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from odfbuild.store import files


def lives(number: int, work: Callable[[], object]) -> bool:
    """Do work in a process that dies at its durable write of that number; whether it lived."""
    pid = os.fork()
    if pid == 0:
        real, seen = os.fsync, [0]

        def counted(fd: int) -> None:
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            seen[0] += 1
            real(fd)

        files.os.fsync = counted  # type: ignore[attr-defined]
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFEXITED(status)
