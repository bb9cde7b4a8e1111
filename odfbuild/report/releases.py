"""What became of deprecated releases of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odfbuild.apply.deprecate import Deprecated
    from odfbuild.inspect.verify.finding import Finding


def render_deprecated(done: Sequence[Deprecated], now: str) -> str:
    """A line for each dataset."""
    if not done:
        return f"Nothing was computed by another release than {now}."
    return "\n".join(_line(each) for each in done)


def _line(each: Deprecated) -> str:
    releases = ", ".join(each.releases)
    if not each.reproduced:
        return f"  ! {each.name}: {each.now} does not stand in for {releases}"
    where = "" if each.block is None else f", as block #{each.block} says"
    return f"  {each.name}: {each.now} stands in for {releases}{where}"


def deprecated_to_data(
    done: Sequence[Deprecated], findings: Sequence[Finding], now: str
) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "release": now,
        "datasets": [
            {
                "name": each.name,
                "releases": list(each.releases),
                "release": each.now,
                "reproduced": each.reproduced,
                "block": each.block,
            }
            for each in done
        ],
        "findings": [
            {"dataset": each.dataset, "code": each.code, "message": each.message}
            for each in findings
        ],
    }
