"""Benchmarks, which no test runs, hear all that runs tell."""

from __future__ import annotations

import runpy
from pathlib import Path

from odfbuild.apply.options import Listener


def test_the_benchmark_of_merges_hears_all_that_a_push_tells() -> None:
    file = Path(__file__).parents[2] / "benchmarks" / "merge.py"
    module = runpy.run_path(str(file))
    told = {name for name in vars(Listener) if not name.startswith("_")}
    assert told
    assert told <= set(dir(module["Told"]))
