"""Change single places of the pure rooms, run their tests, and list the changes that none notices.

`make mutants` runs this in an environment that has cosmic-ray, which knows what can be changed in
Python. A sample is drawn by a seed: lines first, then a change on that line, so that long modules
count for more. Everything happens in a copy of the checkout. Changes that keep what the code does
stand in `mutants_equivalent.txt`, with the reason, and are not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
TESTS = {
    "odf": ["tests/odf", "tests/conformance", "tests/project"],
    "plan": ["tests/plan", "tests/project", "tests/report"],
    "sql": ["tests/sql", "tests/plan", "tests/project"],
}
"""The folders of tests for each room: its own, and those that look at it through definitions."""

_KINDS = re.compile(
    r"core/(ReplaceComparisonOperator_(?!.*_Is)|ReplaceBinaryOperator_(Add|Sub|Mul|FloorDiv|Mod)_(Add|Sub|Mul)"
    r"|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd"
    r"|ReplaceBreakWithContinue|ReplaceUnaryOperator_Delete_Not|NumberReplacer|ZeroIterationForLoop)"
)
"""The changes that are made: no identity of objects, and no `|`, which stands in types mostly."""

_LONGEST = 600
"""Seconds after which tests count as having noticed: a change can make a loop endless."""


@dataclass(frozen=True)
class Mutant:
    """One change: `module` is relative to the checkout, `line` counts from 1."""

    module: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """What tells it from others, also after lines were added above it."""
        return f"{self.module}: {self.before} -> {self.after}"


def mutants_of(path: Path, random_: random.Random) -> list[Mutant]:
    """One change for each line of a module that can be changed."""
    source = path.read_text("utf-8")
    tree = parso.parse(source)
    places: dict[int, list[tuple[str, int]]] = {}
    for name in operator_names():
        if not _KINDS.match(name):
            continue
        operator, count = get_operator(name)(), 0
        for node in _nodes(tree):
            for (line, _), _ in operator.mutation_positions(node):
                places.setdefault(line, []).append((name, count))
                count += 1
    found = []
    for line, options in sorted(places.items()):
        name, occurrence = random_.choice(options)
        changed = mutate_code(source.encode(), get_operator(name)(), occurrence)
        mutant = _mutant(path, source, changed if isinstance(changed, str) else "", line)
        if mutant is not None:
            found.append(mutant)
    return found


def _nodes(node: parso.tree.NodeOrLeaf):  # type: ignore[no-untyped-def]
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _mutant(path: Path, source: str, changed: str, line: int) -> Mutant | None:
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    different = [(n, one, other) for n, (one, other) in enumerate(pairs, 1) if one != other]
    if not different:
        return None
    number, before, after = different[0]
    module = str(path.relative_to(ROOT))
    return Mutant(module, number, before.strip(), after.strip(), changed)


def tests_of(module: str, room: str) -> list[list[str]]:
    """What is run, one after the other: files that name the module, then all of the rooms.

    The first few notice most changes, and collecting all tests takes longer than running these.
    """
    dotted = module.removesuffix(".py").replace("/", ".")
    parent, _, stem = dotted.rpartition(".")
    named = re.compile(rf"\b{re.escape(dotted)}\b|from {re.escape(parent)} import .*\b{stem}\b")
    files = [path for folder in TESTS[room] for path in sorted((ROOT / folder).rglob("test_*.py"))]
    first = [path for path in files if named.search(path.read_text("utf-8"))]
    return [each for each in ([str(p.relative_to(ROOT)) for p in first], TESTS[room]) if each]


def is_noticed(mutant: Mutant, room: str, copy: Path, python: str) -> bool:
    """Whether a test fails while the change is in place."""
    target = copy / mutant.module
    original = target.read_bytes()
    target.write_text(mutant.source, "utf-8")
    try:
        return any(_fails(tests, copy, python) for tests in tests_of(mutant.module, room))
    finally:
        target.write_bytes(original)


def _fails(tests: list[str], copy: Path, python: str) -> bool:
    # Not resolved: the Python that a link leads to has none of the packages.
    command = [str(Path(python).absolute()), "-m", "pytest", "-x", "-q", "-m", "not spark"]
    command += ["-p", "no:cacheprovider", "--hypothesis-profile", "quick", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            check=False,
            text=True,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:
        return True
    if ended.returncode in (0, 1, 2, 5):  # 2: what collects fails already; 5: no test without Spark
        return ended.returncode in (1, 2)
    raise SystemExit(f"pytest ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")


def main() -> int:
    """Print a line for each change, and how many were noticed; 1 if it is less than `--least`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the Python that has the tests")
    parser.add_argument("--rooms", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--sample", type=int, default=100, help="number of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.9, help="share that has to be noticed")
    words = parser.parse_args()
    random_ = random.Random(words.seed)
    modules = [
        (room, path)
        for room in words.rooms
        for path in sorted((ROOT / "odfbuild" / room).rglob("*.py"))
    ]
    weights = [len(path.read_text("utf-8").splitlines()) for _, path in modules]
    equivalent = set(EQUIVALENT.read_text("utf-8").splitlines())
    noticed = made = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        left_out = (".venv*", ".git", ".odfbuild", "build", "vendored", ".*cache")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*left_out))
        for room in words.rooms:
            module = f"odfbuild/{room}/__init__.py"
            as_it_is = Mutant(module, 1, "", "", (ROOT / module).read_text("utf-8"))
            if is_noticed(as_it_is, room, copy, words.python):
                raise SystemExit(f"tests of {room}/ fail without any change")
        while made < words.sample:
            room, path = random_.choices(modules, weights)[0]
            options = mutants_of(path, random_)
            mutant = random_.choice(options) if options else None
            if mutant is None or mutant.name in equivalent:
                continue
            made += 1
            is_seen = is_noticed(mutant, room, copy, words.python)
            noticed += is_seen
            word = "noticed " if is_seen else "SURVIVED"
            print(
                f"{word} {mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}",
                flush=True,
            )
    print(f"{noticed} of {made} changes were noticed ({noticed / made:.0%})")
    return int(noticed < words.least * made)


if __name__ == "__main__":
    raise SystemExit(main())
