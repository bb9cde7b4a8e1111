"""Datasets, definitions and records as they were, through the program, worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from odfbuild import Project
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.spark

_SNAPSHOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: prices/*.csv
        order: ByName
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, symbol STRING, price BIGINT]
      merge:
        kind: Snapshot
        primaryKey: [symbol]
        compareColumns: [price]
"""


def day(number: int, *prices: str) -> str:
    lines = [f"2024-0{number}-01 00:00:00,{price}" for price in prices]
    return "\n".join(["event_time,symbol,price", *lines]) + "\n"


def test_what_was_known_and_what_was_true(odfbuild: Program) -> None:
    tiny = Tiny(odfbuild.root)
    (tiny.root / "datasets" / "prices.yaml").write_text(_SNAPSHOT)
    (tiny.root / "prices").mkdir()
    (tiny.root / "prices" / "1.csv").write_text(day(1, "A,10", "B,20", "C,30"))
    (tiny.root / "prices" / "2.csv").write_text(day(2, "A,11", "B,20", "C,30"))
    odfbuild.apply()
    heads = [
        odfbuild.ok("log", name, "-n", "1", "--json").data[0]
        for name in ("prices", "root", "derived")
    ]
    block, then = (
        heads[0]["blockHash"],
        max((each["systemTime"] for each in heads), key=Timestamp.parse),
    )
    (tiny.root / "prices" / "3.csv").write_text(day(3, "A,11", "B,21"))
    tiny.arrive(2)
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.derive("later", QUERY)
    odfbuild.apply()

    # Lists and definitions, by time and by block.
    assert odfbuild.ok("ls", "--as-of", "2020-01-01").out.strip() == "There are no datasets yet."
    past = {each["name"]: each for each in odfbuild.ok("ls", "--as-of", then, "--json").data}
    now = {each["name"]: each for each in odfbuild.ok("ls", "--json").data}
    assert past.keys() == {"root", "derived", "prices"}
    assert [past["root"]["records"], now["root"]["records"]] == [3, 4]
    assert (past["prices"]["head"], "status" in past["prices"]) == (block, False)
    assert odfbuild.ok("ls", "prices", "--as-of", block[-8:], "--json").data == [past["prices"]]
    assert "value * 10 AS" in odfbuild.ok("render", "derived", "--as-of", then).out
    assert "value * 100 AS" in odfbuild.ok("render", "derived", "--as-of", "2999-01-01").out
    changed = {
        each["name"]: each["change"]
        for each in odfbuild.ok("diff", "--as-of", then, "--json").data["datasets"]
    }
    assert changed == {"derived": "changed", "later": "added"}
    assert odfbuild("diff", "HEAD", "--as-of", then).code == 64

    # Chains and graphs.
    shown = odfbuild.ok("log", "prices", "--as-of", then, "-n", "1", "--json").data
    assert [each["blockHash"] for each in shown] == [block]
    assert odfbuild.ok("log", "prices", "--as-of", block[-8:], "--json").data[0] == shown[0]
    assert odfbuild.ok("log", "prices", "--as-of", "2020-01-01", "--json").data == []
    assert odfbuild("log", "prices", "--as-of", then, "--vintage").code == 64
    assert odfbuild.ok("graph", "--as-of", then).out == "prices\nroot\n└─ derived\n"
    assert "later" in odfbuild.ok("graph", "--as-of", "2999-01-01").out
    assert odfbuild.ok("graph", "derived", "--as-of", then, "--dot").out.count("->") == 0
    assert odfbuild("graph", "--as-of", then, "--format", "openlineage").code == 64

    # Records: what was known, what was true, and what was known to be true.
    def asked(*options: str) -> list[tuple[str, int]]:
        query = "SELECT symbol, price FROM prices ORDER BY symbol"
        rows = odfbuild.ok("sql", query, "--json", *options).data
        return [(row["symbol"], row["price"]) for row in rows]

    assert asked() == [("A", 11), ("B", 21)]
    assert asked("--as-of", then) == [("A", 11), ("B", 20), ("C", 30)]
    assert asked("--valid-at", "2024-01-15T00:00:00Z") == [("A", 10), ("B", 20)]
    assert asked("--as-of", then, "--valid-at", "2024-01-15T00:00:00Z") == [
        ("A", 10),
        ("B", 20),
        ("C", 30),
    ]
    project = Project(odfbuild.root)
    table = project.sql(
        "SELECT count(*) AS n FROM prices",
        as_of=Timestamp.parse(then).to_datetime() + timedelta(milliseconds=1),
        valid_at=datetime(2024, 1, 15, tzinfo=UTC),
    )
    assert table.to_pylist() == [{"n": 3}]
    assert odfbuild("sql", "SELECT * FROM later", "--as-of", then).code == 1
    assert odfbuild("sql", "SELECT * FROM prices", "--history", "--valid-at", then).code == 64
    assert [r["id"] for r in odfbuild.ok("tail", "root", "--as-of", then, "--json").data] == [
        1,
        2,
        3,
    ]

    # What a report made then would have to correct.
    said = odfbuild.ok("corrections", "prices", "--since", block, "--by", "month", "--json").data
    assert said["periods"] == [
        {"eventTime": "2024-01", "corrected": 1, "retracted": 1, "late": 0},
    ]
    fates = {each["fate"]: (each["before"], each["after"]) for each in said["records"]}
    assert fates["corrected"][0]["price"] == 20 and fates["corrected"][1]["price"] == 21
    assert fates["retracted"][0]["symbol"] == "C" and fates["retracted"][1] is None
    text = odfbuild.ok("corrections", "prices", "--since", then).out.splitlines()
    assert text[2:4] == [
        "event time  corrected  retracted  late",
        "2024-01             1          1     0",
    ]
    assert "price 20 → 21" in "\n".join(text)
    assert "No record was corrected" in odfbuild.ok("corrections", "root", "--since", then).out

    # A record of a time before the watermark of then comes late.
    (tiny.root / "data" / "3.csv").write_text("event_time,id,value\n2024-01-02 00:00:00,9,9\n")
    odfbuild.apply()
    [late] = odfbuild.ok("corrections", "root", "--since", then, "--json").data["records"]
    assert (late["fate"], late["after"]["id"]) == ("late", 9)
