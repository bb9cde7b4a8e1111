"""Make the projects that are wrong, without an engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from odfbuild.cli.main import run
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.cli.real import ENVIRONMENT
from tests.cli.wrong import CASES, FLAWS
from tests.cli.wrong.spoil import Pair


def wrong_projects(base: Path) -> list[Path]:
    """A project for each case, in their order."""
    roots = []
    with preparing():
        applied = Tiny.fresh(base / "applied")
        assert run(["-C", str(applied.root), "apply", "-y"]) == 0
        for number, case in enumerate(CASES):
            root = base / f"{number}"
            if case.fresh:
                tiny = Tiny.fresh(root)
            else:
                tiny = Tiny(Path(shutil.copytree(applied.root, root)))
            os.chdir(root)
            case.spoil(tiny)
            os.chdir(base)
            roots.append(root)
    return roots


def flawed_project(base: Path) -> Path:
    """A project with a pair of datasets for each flaw, `e0601.root` and `e0601.derived`."""
    with preparing():
        tiny = Tiny.fresh(base / "flawed")
        root = (tiny.root / "datasets" / "root.yaml").read_text()
        pairs = [Pair(tiny.root, f"{flaw.code.lower()}.") for flaw in FLAWS]
        for pair in pairs:
            text = root.replace("name: root", f"name: {pair.prefix}root")
            (tiny.root / "datasets" / f"{pair.prefix}root.yaml").write_text(text)
            tiny.derive(f"{pair.prefix}derived", QUERY, f"{pair.prefix}root")
        assert run(["-C", str(tiny.root), "apply", "-y"]) == 0
        for pair, flaw in zip(pairs, FLAWS, strict=True):
            flaw.spoil(pair)
    return tiny.root


@contextmanager
def preparing() -> Iterator[None]:
    """Commands in this process have an engine without a JVM, say nothing, and see little."""
    here = Path.cwd()
    with (
        pytest.MonkeyPatch.context() as patch,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        share(PlainEngine(), patch)
        for name in set(os.environ) - set(ENVIRONMENT):
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
        yield
    os.chdir(here)
