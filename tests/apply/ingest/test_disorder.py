"""Windows over files out of order, events from the future and idle sources, computed by hand.

What was committed is done again by `verify` in another process, with another clock.
"""

from __future__ import annotations

import pytest

from odfbuild.odf.timestamp import Timestamp
from tests.apply.derive.test_watermark_rules import DAILY, Clock, add, configure
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, "2024-01-10T12:30:00Z")


def windows(tiny: Tiny, name: str = "derived") -> list[tuple[str, int]]:
    """Start and number of records of each window that was closed, in order of offset."""
    return [(f"{each['event_time']:%m-%d}", each["value"]) for each in tiny.records(name)]


def test_windows_over_disorder_are_what_a_hand_computes_and_verify_repeats_them(
    odfbuild: Program, clock: Clock
) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", DAILY)
    configure(tiny, "      delay: 1d\n      maxAhead: 1h\n      nowMinus: 3d\n")

    # 1, 2 and 3 January: the clock says 7 January, three days before it, for a start.
    clock.set("2024-01-04T12:30:00Z")
    said = odfbuild.apply()
    # The clock promises 1 January, 0:00; the records 2 January, 0:00.
    assert str(tiny.state()["root"][2]) == "2024-01-02T00:00:00Z"
    assert windows(tiny) == [("01-01", 1)]

    # Out of order: 2 January again, which is still open; 1 January, which is closed.
    add(tiny, "2", "2024-01-02 09:00:00", "2024-01-04 01:00:00", "2024-01-01 23:00:00")
    # From the future: it counts in no watermark, and in its window when that is closed.
    add(tiny, "3", "2024-01-08 09:00:00", "2024-01-03 23:30:00", first=200)
    plan = odfbuild.ok("plan")
    assert "maxAhead" not in plan.out
    said = odfbuild.apply()
    # The latest event time that counts is 4 January, 1:00; one day before it.
    assert str(tiny.state()["root"][2]) == "2024-01-03T01:00:00Z"
    assert "1 record lies too far in the future" in said.out
    assert "1 record of root arrived after the window was closed" in said.out
    assert "`odfbuild watermark late derived` lists it" in said.out
    assert windows(tiny) == [("01-01", 1), ("01-02", 2)]

    # Idle: no file comes. On 8 January the clock promises the 5th, which closes two windows.
    clock.set("2024-01-08T00:10:00Z")
    odfbuild.apply()
    assert str(tiny.state()["root"][2]) == "2024-01-05T00:00:00Z"
    assert windows(tiny) == [("01-01", 1), ("01-02", 2), ("01-03", 2), ("01-04", 1)]
    assert odfbuild("plan", "--detailed-exitcode").code == 0

    # On 12 January, what lay in the future is past.
    clock.set("2024-01-12T00:00:00Z")
    odfbuild.apply()
    assert windows(tiny)[4:] == [("01-08", 1)]
    assert tiny.state()["derived"][2] == Timestamp.parse("2024-01-09T00:00:00Z")
    found = odfbuild.ok("watermark", "late", "derived", "--json").data["records"]
    assert [each["event_time"] for each in found] == ["2024-01-01T23:00:00Z"]

    # All at once, from the same chain of the root: the same windows.
    tiny.derive("again", DAILY)
    odfbuild.apply()
    assert windows(tiny, "again") == windows(tiny)

    # Another process, on the clock of this machine, with other rules or none.
    configure(tiny, "      delay: 5d\n")
    done = tiny.run("verify", "derived", "again")
    assert done.returncode == 0, done.stdout + done.stderr
