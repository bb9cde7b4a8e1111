"""A project that `odfbuild engine serve` and the built-in Spark compute in turns."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter

import pytest

from odfbuild.odf.model import SetTransform
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.engine.process.test_serve_program import served, stops

pytestmark = pytest.mark.spark

QUERIES = {
    "derived": "SELECT event_time, id, value * 10 AS value FROM source",
    "daily": "SELECT window.start AS event_time, COUNT(*) AS n FROM source"
    " GROUP BY window(event_time, '1 day')",
    "totals": "SELECT MAX(event_time) AS event_time, value % 2 AS odd, SUM(value) AS total"
    " FROM source GROUP BY value % 2",
}
NAMES = sorted(QUERIES)


def versions(tiny: Tiny) -> set[str | None]:
    """The engines that computed, or stand in, by what the chains say last."""
    events = [[e for e in tiny.events(name) if isinstance(e, SetTransform)] for name in NAMES]
    return {each[-1].transform.version for each in events}


def test_what_is_served_and_what_is_built_in_go_on_from_and_verify_each_other(
    odfbuild: Program,
) -> None:
    tiny = Tiny(odfbuild.root)
    for name, query in QUERIES.items():
        tiny.derive(name, query)
    settings = tiny.root / "odfbuild.yaml"
    built_in = settings.read_text()
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as short:
        address = f"unix:{short}/engine"
        engines = {"spark": {"address": address, "version": "served"}}
        with served("--listen", address, "--folder", str(tiny.root)) as (process, _):
            settings.write_text(f"{built_in}  engines: {json.dumps(engines)}\n")
            odfbuild.apply()
            tiny.arrive(2)
            odfbuild.apply()
            assert versions(tiny) == {"spark@served"}

            # Recomputed built in: all hashes have to be those of the served engine.
            settings.write_text(built_in)
            odfbuild.ok("engine", "deprecate")
            (tiny.root / "data" / "3.csv").write_text(
                "event_time,id,value\n2024-03-01 00:00:00,9,9\n"
            )
            odfbuild.apply()
            [release] = versions(tiny)
            assert release and "@" not in release

            # The other way, from the checkpoints of the served engine.
            settings.write_text(f"{built_in}  engines: {json.dumps(engines)}\n")
            said = odfbuild.ok("engine", "deprecate").out
            assert f"daily: spark@served stands in for {release}" in said
            assert "recomputed 9 steps of 3 derivatives" in odfbuild.ok("verify").out
            stops(process)
            assert process.stdout is not None
            asked = Counter(re.findall(r"ExecuteTransform of (\w+): done", process.stdout.read()))
    # The columns, two steps, three steps again, and the two again that it had computed first.
    assert asked == dict.fromkeys(NAMES, 1 + 2 + 3 + 2)
    assert [(each["op"], each["odd"], each["total"]) for each in tiny.records("totals")] == [
        *((0, 0, 2), (0, 1, 4), (2, 0, 2), (3, 0, 6), (2, 1, 4), (3, 1, 13))
    ]
    assert len(tiny.records("daily")) == 4
