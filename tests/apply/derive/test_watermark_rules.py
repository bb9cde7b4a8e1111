"""Watermarks for disorder: `watermarks` of odfbuild.yaml, computed by hand."""

from __future__ import annotations

import pytest

from odfbuild.declared_settings import read
from odfbuild.odf.model import AddData
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.watermarks import WatermarkRule, rule_of
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

DAILY = (
    "SELECT window.start AS event_time, max(id) AS id, count(*) AS value FROM source "
    "GROUP BY window(event_time, '1 day')"
)

NO_WINDOWS = {
    "dataset": "derived",
    "late_records": 0,
    "records_for_new_query": 0,
    "dropped_records": 0,
    "repeated_records": 0,
}


def at(text: str) -> Timestamp:
    return Timestamp.parse(text)


class Clock:
    """The wall clock, stopped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.time = at(text)
        monkeypatch.setattr(Timestamp, "now", classmethod(lambda _: self.time))

    def set(self, text: str) -> None:
        """Let it show another time."""
        self.time = at(text)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, "2024-01-10T13:14:15.678Z")


def configure(tiny: Tiny, text: str) -> None:
    file = tiny.root / "odfbuild.yaml"
    before, _, _ = file.read_text().partition("  watermarks:")
    file.write_text(f"{before}  watermarks:\n    - match: [RO*]\n{text}")


def add(tiny: Tiny, name: str, *times: str, first: int = 100) -> None:
    """A file with one record for each time."""
    rows = [f"{time},{first + number},1" for number, time in enumerate(times)]
    (tiny.root / "data" / f"{name}.csv").write_text("\n".join(["event_time,id,value", *rows, ""]))


@pytest.mark.parametrize(
    ("last", "newest", "said", "watermark"),
    [
        (None, None, {}, None),
        (None, "2024-01-03T00:00:00Z", {}, "2024-01-03T00:00:00Z"),
        (None, "2024-01-03T00:00:00Z", {"delay": "1d"}, "2024-01-02T00:00:00Z"),
        (None, "2024-01-03T00:00:00Z", {"delay": "90s"}, "2024-01-02T23:58:30Z"),
        ("2024-01-02T12:00:00Z", "2024-01-03T00:00:00Z", {"delay": "1d"}, "2024-01-02T12:00:00Z"),
        ("2024-01-02T12:00:00Z", None, {"delay": "1d"}, "2024-01-02T12:00:00Z"),
        (None, "2024-01-03T00:00:00Z", {"nowMinus": "2d"}, "2024-01-08T00:00:00Z"),
        (None, "2024-01-03T00:00:00Z", {"nowMinus": "1w"}, "2024-01-03T00:00:00Z"),
        (None, None, {"nowMinus": "49h"}, "2024-01-08T12:00:00Z"),
        (None, None, {"nowMinus": "14m"}, "2024-01-10T13:00:00Z"),
        (None, None, {"nowMinus": "15s"}, "2024-01-10T13:14:00Z"),
        ("2024-01-09T00:00:00Z", None, {"nowMinus": "2d"}, "2024-01-09T00:00:00Z"),
        (None, "0001-01-01T00:00:00Z", {"delay": "99999w"}, None),
    ],
)
def test_a_watermark_follows_records_and_clock_and_never_goes_back(
    last: str | None, newest: str | None, said: dict[str, str], watermark: str | None
) -> None:
    (rule,) = read(tuple[WatermarkRule, ...], [{"match": ["*"], **said}])
    known = [None if each is None else at(each) for each in (last, newest)]
    found = rule.watermark(*known, at("2024-01-10T13:14:15.678Z"))
    assert (found and str(found)) == watermark


def test_of_several_rules_that_match_the_last_one_says() -> None:
    rules = read(
        tuple[WatermarkRule, ...],
        [{"match": ["a*"], "delay": "1d"}, {"match": ["*b", "x"], "maxAhead": "1h"}],
    )
    assert rule_of(rules, "AB") is rules[1]
    assert rule_of(rules, "ax") is rules[0]
    assert rule_of(rules, "c").delay == 0


def test_the_watermark_stays_behind_the_last_event_by_the_delay(
    odfbuild: Program, clock: Clock
) -> None:
    tiny = Tiny(odfbuild.root)
    configure(tiny, "      delay: 36h\n")
    odfbuild.apply()
    # Records of 1, 2 and 3 January.
    assert odfbuild.ok("watermark", "root").out == "2024-01-01T12:00:00Z\n"
    assert odfbuild.ok("watermark", "derived").out == "2024-01-01T12:00:00Z\n"
    add(tiny, "2", "2024-01-02 06:00:00", "2024-01-01 11:00:00")
    odfbuild.apply()
    assert odfbuild.ok("watermark", "root").out == "2024-01-01T12:00:00Z\n"
    assert odfbuild("plan", "--detailed-exitcode").code == 0


def test_records_from_the_future_do_not_move_the_watermark_and_are_counted(
    odfbuild: Program, clock: Clock
) -> None:
    tiny = Tiny(odfbuild.root)
    configure(tiny, "      maxAhead: 1h\n")
    add(tiny, "2", "2024-01-10 14:14:15", "2024-01-10 14:14:16", "2924-01-01 00:00:00")
    said = odfbuild.apply()
    # The clock shows 13:14:15.678: one of the three is within an hour of it.
    assert odfbuild.ok("watermark", "root").out == "2024-01-10T14:14:15Z\n"
    assert "2 records lie too far in the future to move the watermark" in said.out
    assert len(tiny.ids("root")) == 6


def test_an_idle_source_has_its_watermark_moved_by_the_clock_and_the_plan_says_so(
    odfbuild: Program, clock: Clock
) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", DAILY)
    odfbuild.apply()
    configure(tiny, "      nowMinus: 2d\n")
    plan = odfbuild.ok("plan")
    assert "because its watermark follows the clock and has to move" in plan.out
    planned = {each["name"]: each for each in odfbuild.ok("plan", "--json").data["datasets"]}
    assert planned["root"]["actions"] == planned["derived"]["actions"] == ["run"]
    assert odfbuild("plan", "--detailed-exitcode").code == 2
    assert "by the clock" in odfbuild.apply().out
    event = tiny.events("root")[-1]
    assert isinstance(event, AddData)
    assert (event.new_data, str(event.new_watermark)) == (None, "2024-01-08T00:00:00Z")
    assert event.new_source_state is not None  # the file is not read twice
    assert odfbuild.ok("watermark", "derived").out == "2024-01-08T00:00:00Z\n"

    # The same day there is nothing to do, with and without what the last plan remembered.
    clock.set("2024-01-10T23:59:59.999Z")
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    assert odfbuild("plan", "--detailed-exitcode").code == 0
    clock.set("2024-01-11T00:00:00Z")
    assert odfbuild("plan", "--detailed-exitcode").code == 2
    odfbuild.apply()
    assert odfbuild.ok("watermark", "root").out == "2024-01-09T00:00:00Z\n"

    # What was promised stays promised when the rule goes.
    configure(tiny, "      delay: 1d\n")
    add(tiny, "2", "2024-01-09 12:00:00")
    odfbuild.apply()
    assert odfbuild.ok("watermark", "root").out == "2024-01-09T00:00:00Z\n"


def test_wrong_rules_are_refused_with_their_place(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    configure(tiny, "      delay: 1 day\n      maxahead: 1h\n")
    said = odfbuild("plan")
    assert said.code == 1
    assert "odfbuild.yaml:9:7" in said.err
    assert "expected something like 45s, 30m, 36h, 2d, 1w; found the string '1 day'" in said.err
    assert "did you mean 'maxAhead'?" in said.err


def test_the_plan_counts_records_that_came_behind_a_window(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", DAILY)
    odfbuild.apply()  # the watermark is 3 January, 0:00
    add(tiny, "2", "2024-01-01 23:00:00", "2024-01-02 23:59:59", "2024-01-03 00:00:00")
    odfbuild.ok("apply", "-y", "--select", "root")
    plan = odfbuild.ok("plan")
    assert "2 records arrived after the window was closed and are left out" in plan.out
    data = odfbuild.ok("plan", "--json").data
    assert data["windows"] == [{**NO_WINDOWS, "late_records": 2}]
    odfbuild.apply()
    found = odfbuild.ok("watermark", "late", "derived", "--json").data
    assert (found["total"], found["windows"]) == (2, True)
    assert [each["offset"] for each in found["records"]] == [3, 4]
    assert {each["watermark"] for each in found["records"]} == {"2024-01-03T00:00:00Z"}
    text = odfbuild.ok("watermark", "late", "derived", "-n", "1").out
    assert text.splitlines()[0] == (
        "derived: 2 records arrived after the window was closed; the newest 1 are:"
    )
    assert text.splitlines()[2].split() == [
        *("root", "4", "2024-01-02T23:59:59Z", "2024-01-03T00:00:00Z")
    ]
    # A root has no windows: what came behind its watermark is late.
    assert odfbuild.ok("watermark", "late", "root", "--json").data["total"] == 2
    assert odfbuild("plan", "--detailed-exitcode").code == 0


def test_a_changed_query_says_how_many_records_of_open_windows_it_gets(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", DAILY)
    add(tiny, "2", "2024-01-03 10:00:00", "2024-01-03 11:00:00", "2024-01-02 12:00:00")
    odfbuild.apply()  # the watermark is 3 January, 11:00
    tiny.derive("derived", DAILY.replace("count(*) AS value", "sum(value) AS value"))
    plan = odfbuild.ok("plan")
    assert "the new query reads 3 earlier records again" in plan.out
    data = odfbuild.ok("plan", "--json").data
    assert data["windows"] == [{**NO_WINDOWS, "records_for_new_query": 3}]
    # Windows of two days: that of 2 and 3 January is open as well.
    tiny.derive("derived", DAILY.replace("1 day", "2 days"))
    data = odfbuild.ok("plan", "--json").data
    assert data["windows"] == [{**NO_WINDOWS, "records_for_new_query": 5, "repeated_records": 1}]


def opened(odfbuild: Program, query: str) -> Tiny:
    """A result of `query` until 3 January, 11:30, with four records on that day."""
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", query)
    add(tiny, "2", "2024-01-03 10:00:00", "2024-01-03 11:10:00", "2024-01-03 11:30:00")
    odfbuild.apply()
    return tiny


def test_a_window_that_is_open_when_the_query_changes_closes_by_the_new_one_as_a_whole(
    odfbuild: Program,
) -> None:
    tiny = opened(odfbuild, DAILY)
    tiny.derive("derived", DAILY.replace("count(*) AS value", "count(*) * 100 AS value"))
    assert "the new query reads 4 earlier records again" in odfbuild.ok("plan").out


def test_records_that_no_window_of_the_new_query_holds_are_counted_in_the_plan(
    odfbuild: Program,
) -> None:
    tiny = opened(odfbuild, DAILY)
    tiny.derive("derived", DAILY.replace("1 day", "1 hour"))
    # The watermark is 11:30: hours that ended before hold the records of 0:00 and 10:00.
    plan = odfbuild.ok("plan")
    assert "2 records of open windows will be in no result" in plan.out
    assert odfbuild.ok("plan", "--json").data["windows"] == [
        {**NO_WINDOWS, "records_for_new_query": 2, "dropped_records": 2}
    ]


def test_records_that_longer_windows_of_the_new_query_count_again_are_counted_in_the_plan(
    odfbuild: Program,
) -> None:
    tiny = opened(odfbuild, DAILY.replace("1 day", "1 hour"))
    tiny.derive("derived", DAILY)
    plan = odfbuild.ok("plan")
    assert "2 records of closed windows will be counted again" in plan.out


def test_a_query_without_windows_leaves_records_of_open_ones_in_no_result(
    odfbuild: Program,
) -> None:
    tiny = opened(odfbuild, DAILY)
    tiny.derive("derived", "SELECT event_time, id, value FROM source")
    plan = odfbuild.ok("plan")
    assert "4 records of open windows will be in no result" in plan.out
    # A query over the whole history leaves nothing out.
    tiny.derive(
        "derived",
        "SELECT event_time, max(id) AS id, sum(value) AS value FROM source GROUP BY event_time",
    )
    assert "in no result" not in odfbuild.ok("plan").out
