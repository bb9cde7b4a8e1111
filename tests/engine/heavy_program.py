"""Work for a JVM of little memory, which ends under it: `python -m tests.engine.heavy_program DIR`.

Prints, as JSON, what came of each piece: the number of records, or the error.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.start import start_engine
from odfbuild.errors import OdfbuildError
from tests.engine.inputs import read, rows, slices, sql, task

HEAVY = (
    "SELECT max(event_time) AS event_time,"
    " size(array_sort(collect_list(repeat(city || a, 1000000)))) AS n FROM cities"
    " LATERAL VIEW explode(sequence(1, 400)) AS a"
)
SLOW = (
    "SELECT event_time, count(a) AS n FROM cities"
    " LATERAL VIEW explode(sequence(1, 300000)) AS a GROUP BY event_time"
)
ENDLESS = (
    "SELECT event_time, count(a + b) AS n FROM cities"
    " LATERAL VIEW explode(sequence(1, 30000)) AS a"
    " LATERAL VIEW explode(sequence(1, 30000)) AS b GROUP BY event_time"
)
"""Hours of work that needs no memory: whatever ends it first, that is not the heap."""

LIGHT = "SELECT event_time, city FROM cities"


def main(folder: Path) -> None:
    engine = start_engine(EngineSettings(memory="512m"))
    given = slices(folder, rows(0, 5))

    def run(name: str, query: str) -> Any:
        scratch = folder / name
        scratch.mkdir()
        try:
            done = engine.run(task(scratch, sql(query), given))
        except OdfbuildError as error:
            return [error.code, error.message, error.dataset, *error.notes, error.help]
        return read(done.parts).num_rows

    found: dict[str, Any] = {}
    with ThreadPoolExecutor(3) as pool:
        together = {
            "heavy": pool.submit(run, "heavy", HEAVY),
            "slow": pool.submit(run, "slow", SLOW),
            "light": pool.submit(run, "light", LIGHT),
        }
        found |= {name: each.result() for name, each in together.items()}
    found["after"] = run("after", LIGHT)
    found["progress"] = engine.progress("nothing")

    process = engine._session._gateway.process
    threading.Timer(0.5, process.kill).start()
    found["killed"] = run("killed", ENDLESS)
    found["progress of a dead one"] = engine.progress("tests")
    found["after kill"] = run("after-kill", LIGHT)
    engine.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
