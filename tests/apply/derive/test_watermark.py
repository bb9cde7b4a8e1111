"""Watermarks that are set by hand, and who sees them."""

from __future__ import annotations

import pytest

from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.spark


@pytest.fixture
def tiny(tiny: Tiny) -> Tiny:
    """A root, a derivative and one that derives from that."""
    tiny.derive("further", QUERY, source="derived")
    return tiny


def test_a_watermark_moves_forward_and_readers_follow(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    odfbuild.apply()
    assert odfbuild.ok("watermark", "root").out == "2024-01-03T00:00:00Z\n"
    before = tiny.state()
    assert odfbuild.ok("watermark", "set", "ROOT", "2024-06-01T02:00:00+02:00").out == (
        "root: now at 2024-06-01T00:00:00Z\n"
    )
    event = tiny.events("root")[-1]
    assert isinstance(event, AddData)
    assert (event.new_data, event.prev_offset) == (None, 2)
    assert str(event.new_watermark) == "2024-06-01T00:00:00Z"
    # Where the source stands is carried on: the file is not read twice.
    assert event.new_source_state is not None
    assert event.new_source_state.value == before["root"][3] == "1.csv"

    plan = odfbuild.ok("plan", "--json").data["datasets"]
    assert [d["name"] for d in plan if d["actions"]] == ["derived", "further"]
    odfbuild.apply()
    for name in ("derived", "further"):
        last = tiny.events(name)[-1]
        assert isinstance(last, ExecuteTransform)
        assert last.new_data is None
        assert odfbuild.ok("watermark", "show", name, "--json").data == {
            "name": name,
            "watermark": "2024-06-01T00:00:00Z",
        }
    assert odfbuild("plan", "--detailed-exitcode").code == 0

    # Later records of an earlier time do not take it back.
    tiny.arrive(2)
    odfbuild.apply()
    assert tiny.ids("further") == [1, 2, 3, 4]
    assert odfbuild.ok("watermark", "further").out == "2024-06-01T00:00:00Z\n"


def test_going_back_derivatives_and_wrong_times_are_refused(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    odfbuild.apply()
    before = tiny.state()
    again = odfbuild.ok("watermark", "set", "root", "2024-01-03T00:00:00Z", "--json").data
    assert again["changed"] is False
    refused = {
        ("root", "2024-01-02T23:59:59.999Z"): (1, "cannot go back from 2024-01-03T00:00:00Z"),
        ("derived", "2025-01-01T00:00:00Z"): (1, "set the watermark of the root datasets"),
        ("rood", "2025-01-01T00:00:00Z"): (1, "did you mean 'root'?"),
        ("root", "2025-01-01"): (64, "RFC 3339"),
        ("root",): (64, "missing argument 'TIME'"),
    }
    for arguments, (code, part) in refused.items():
        said = odfbuild("watermark", "set", *arguments)
        assert said.code == code, said
        assert part in said.err, said.err
    with tiny.workspace().claim(["root"]):
        later = ("2025-01-01T00:00:00Z", "--lock-timeout", "0")
        assert odfbuild("watermark", "set", "root", *later).code == 9
    assert tiny.state() == before


def test_a_root_without_records_can_have_a_watermark(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "data" / "1.csv").write_text("event_time,id,value\n")
    odfbuild.apply()
    assert "no watermark yet" in odfbuild.ok("watermark", "root").err
    moment = "2020-02-02T00:00:00Z"
    odfbuild.ok("watermark", "set", "root", moment)
    tiny.arrive(2)
    odfbuild.apply()
    state = tiny.workspace().projection("root")
    assert state is not None
    assert (state.records, state.watermark) == (2, Timestamp.parse("2024-02-02T00:00:00Z"))
