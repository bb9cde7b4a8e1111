"""Libraries that only some sources need, and what to do when they are not there."""

from __future__ import annotations

from odfbuild.errors import EnvironmentProblem


def missing_extra(extra: str, purpose: str) -> EnvironmentProblem:
    """The error for an absent optional library; `extra` is its name in `pip install`."""
    return EnvironmentProblem(
        f"{purpose} need a library that is not installed",
        code="E0903",
        help=f"run `pip install 'odfbuild[{extra}]'`",
    )
