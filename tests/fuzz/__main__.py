"""Run made-up cases, each known by its seed, in a process of their own.

A new process begins behind a case that ends it. What was found is told:

    python -m tests.fuzz slices --cases 100000 --seed 0
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz import stored, written

TARGETS = stored.TARGETS | written.TARGETS
SECONDS = 10.0
KILOBYTES = 1 << 20
ADDRESSES = 8 << 30
_ENDLESS = 300.0
"""Seconds by the clock after which a case is given up, and the process with it."""

_SAID = 1_000
"""After so many cases a line says how far it is."""


def most_memory() -> int:
    """The most memory that this program has had, in kB.

    `ru_maxrss` would count what the process that started it had until then.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line[:6] == "VmHWM:"))


def run_here(target: str, seeds: range) -> None:
    """Run cases in this process; a line of JSON before each, and one for each finding."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        case = TARGETS[target](Path(folder))
        peak = 0
        for seed in seeds:
            print(seed, flush=True)
            faulthandler.dump_traceback_later(_ENDLESS, exit=True)
            began = time.process_time()
            try:
                case(seed)
            except Exception:
                print(json.dumps({"seed": seed, "what": traceback.format_exc()}), flush=True)
            seconds = time.process_time() - began
            if seconds > SECONDS:
                print(json.dumps({"seed": seed, "what": f"took {seconds:.1f} s"}), flush=True)
            faulthandler.cancel_dump_traceback_later()
            now = most_memory()
            if now > max(peak, KILOBYTES):
                print(json.dumps({"seed": seed, "what": f"took {now} kB"}), flush=True)
            peak = max(peak, now)


def findings(target: str, cases: int, seed: int = 0) -> Iterator[tuple[int, str]]:
    """Run cases in processes of their own; seed and text of each finding."""
    first, last = seed, seed + cases
    while first < last:
        command = [sys.executable, "-m", "tests.fuzz", target, "--here"]
        command += ["--cases", str(last - first), "--seed", str(first)]
        at = first
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[2],
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                if line.startswith("{"):
                    found = json.loads(line)
                    yield found["seed"], found["what"]
                else:
                    at = int(line)
                    if at % _SAID == 0:
                        print(f"{target}: at seed {at}", file=sys.stderr, flush=True)
        if running.returncode == 0:
            return
        yield at, f"the process ended with {running.returncode}"
        first = at + 1


def main() -> int:
    """Run what the command line says; 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process")
    said = parser.parse_args()
    if said.here:
        run_here(said.target, range(said.seed, said.seed + said.cases))
        return 0
    number = 0
    for seed, what in findings(said.target, said.cases, said.seed):
        number += 1
        print(f"--- {said.target}, seed {seed}:\n{what}", flush=True)
    print(f"{said.target}: {said.cases} cases from seed {said.seed}, {number} findings")
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main())
