"""The program that meets every wrong input in one process: `python -m tests.cli.wrong FOLDER`.

It makes each project in `FOLDER`, spoils it in one way, and runs one command on it, as if it were
started for it; what that says stands between marks. Then it asks every verb for its help.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from odfbuild.cli.main import run
from odfbuild.cli.verbs import VERBS
from tests.apply.tiny import Tiny
from tests.cli.wrong import CASES, MARK
from tests.cli.wrong.spoil import Case


def meet(base: Path) -> None:
    """Run every case in a project of its own in `base`."""
    import pytest

    from tests.apply.in_process import share
    from tests.apply.plain_engine import PlainEngine

    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)  # type: ignore[arg-type]
        applied = Tiny.fresh(base / "applied")
        with quiet():
            assert run(["-C", str(applied.root), "apply", "-y"]) == 0
        for number, case in enumerate(CASES):
            root = base / f"{number}"
            if case.fresh:
                tiny = Tiny.fresh(root)
            else:
                tiny = Tiny(Path(shutil.copytree(applied.root, root)))
            os.chdir(root)
            say(f"{MARK}{case.code}{MARK}")
            code = attempt(case, tiny)
            say(f"{MARK}{code}")
            os.chdir(base)
            shutil.rmtree(root, ignore_errors=True)


def attempt(case: Case, tiny: Tiny) -> int:
    """The exit code of a case; -1 with a traceback for what is no error of ours."""
    try:
        with quiet():
            case.spoil(tiny)
        return run(case.command.split())
    except BaseException:
        say(traceback.format_exc())
        return -1


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be said."""
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    meet(Path(sys.argv[1]))
    for name in VERBS:
        say(f"{MARK}{name}{MARK}")
        said_code = run([name, "--help"])
        say(f"{MARK}{said_code}")
    say(MARK)
