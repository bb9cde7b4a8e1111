"""Windows hold the same records however blocks are divided into runs: the decision, by a model.

Feeds, graphs and divisions are drawn at random. Blocks, intervals, watermarks and where a step ends
are real; what queries give is computed here, in a few lines. The same through the whole program is
in `tests/apply/derive/test_windows_and_runs.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

import pytest

from odfbuild.odf.chain.step import (
    Closeness,
    Interval,
    Link,
    Unread,
    one_step,
    output_watermark,
)
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    MetadataBlock,
    OffsetInterval,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.closeness import Derivative, Readers

_MINUTE = 60_000_000_000
Record = tuple[int, tuple[int, ...]]
"""A minute, and what tells records apart."""


def at(minute: int | None) -> Timestamp | None:
    return None if minute is None else Timestamp(minute * _MINUTE)


@dataclass
class Chain:
    """A dataset: its blocks, and the records of each with the watermark that held before."""

    links: list[Link] = field(default_factory=list)
    records: dict[Multihash, list[Record]] = field(default_factory=dict)
    watermark: Timestamp | None = None

    def append(self, records: Sequence[Record], watermark: Timestamp | None) -> None:
        number = len(self.links)
        hash = Multihash.sha3_256(f"{id(self)} {number}".encode())
        data = None
        if records:
            self.records[hash] = list(records)
            interval = OffsetInterval(start=number * 1000, end=number * 1000 + len(records) - 1)
            data = DataSlice(
                logical_hash=hash, physical_hash=hash, offset_interval=interval, size=1
            )
        event = AddData(new_data=data, new_watermark=watermark)
        block = MetadataBlock(
            system_time=Timestamp(0), prev_block_hash=None, sequence_number=number, event=event
        )
        self.links.append((hash, block))
        self.watermark = watermark

    def read(self, first: int, end: int) -> list[tuple[Record, Timestamp | None]]:
        """The records of blocks, each with what was promised before it came."""
        before = self.links[first - 1][1].event.new_watermark if first else None
        part = Interval(tuple(self.links[first:end]), before)
        return [
            (record, promised)
            for data, promised in part.promised_slices
            for record in self.records[data.physical_hash]
        ]

    def all_records(self) -> list[Record]:
        return sorted(record for records in self.records.values() for record in records)


Given = list[tuple[Record, Timestamp | None]]
Query = Callable[["Step"], list[Record]]


@dataclass(frozen=True)
class Step:
    """What a step reads: of each input what was there, and what is new; how watermarks move."""

    old: Sequence[Given]
    new: Sequence[Given]
    before: Timestamp | None
    after: Timestamp | None


def row_wise(keep: Callable[[Record], Record | None]) -> Query:
    def run(step: Step) -> list[Record]:
        found = (keep(record) for given in step.new for record, _ in given)
        return [each for each in found if each is not None]

    return run


def windows(length: int) -> Query:
    def run(step: Step) -> list[Record]:
        counts: dict[int, int] = {}
        for given in (*step.old, *step.new):
            for (minute, _), promised in given:
                end = minute // length * length + length
                passed = max(_of(step.before), _of(promised))
                if passed < end * _MINUTE <= _of(step.after):
                    counts[end - length] = counts.get(end - length, 0) + 1
        return [(start, (number,)) for start, number in counts.items()]

    return run


def _of(time: Timestamp | None) -> float:
    return float("-inf") if time is None else time.ns


def pairs(match: Callable[[Record, Record], Record | None]) -> Query:
    def run(step: Step) -> list[Record]:
        left, right = (
            [(one, False) for one, _ in old] + [(one, True) for one, _ in new]
            for old, new in zip(step.old, step.new, strict=True)
        )
        found = [match(a, b) for a, is_new in left for b, other in right if is_new or other]
        return [each for each in found if each is not None]

    return run


@dataclass
class Defined:
    """A derivative: its query as text and as a function, and how far it has read its inputs."""

    inputs: list[str]
    text: str
    query: Query
    positions: list[int] = field(default_factory=list)


def window_of(source: str, length: int) -> Defined:
    text = (
        f"SELECT window.start AS event_time, count(*) AS id FROM {source} GROUP BY"
        f" window(event_time, '{length} minutes')"
    )
    return Defined([source], text, windows(length))


def keep_some(source: str, chance: random.Random) -> Defined:
    modulus = chance.choice([2, 3, 5])
    return Defined(
        [source],
        f"SELECT event_time, id FROM {source} WHERE id % {modulus} > 0",
        row_wise(lambda record: record if record[1][0] % modulus else None),
    )


def shifted(source: str, chance: random.Random) -> Defined:
    by = chance.choice([-90, -20, 30])
    return Defined(
        [source],
        f"SELECT event_time + INTERVAL '{by}' MINUTES AS event_time, id FROM {source}",
        row_wise(lambda record: (record[0] + by, record[1])),
    )


def united(one: str, other: str) -> Defined:
    rows = "SELECT event_time, id FROM"
    return Defined([one, other], f"{rows} {one} UNION ALL {rows} {other}", row_wise(lambda r: r))


def joined(one: str, other: str, chance: random.Random) -> Defined:
    modulus, ordered = chance.choice([2, 4]), chance.random() < 0.6
    order = f" AND {one}.event_time >= {other}.event_time" if ordered else ""

    def match(a: Record, b: Record) -> Record | None:
        same = sum(a[1]) % modulus == sum(b[1]) % modulus
        return (a[0], (*a[1], *b[1])) if same and (not ordered or a[0] >= b[0]) else None

    return Defined(
        [one, other],
        f"SELECT {one}.event_time, {one}.id FROM {one} JOIN {other}"
        f" ON {one}.id % {modulus} = {other}.id % {modulus}{order}",
        pairs(match),
    )


Graph = dict[str, Defined]


def drawn(chance: random.Random, one: str, other: str) -> Defined:
    """A derivative of one input, or of two that differ."""
    match chance.choice(["keep", "shift", "other", "other"]):
        case "keep":
            return keep_some(one, chance)
        case "shift":
            return shifted(one, chance)
        case _ if one == other:
            return window_of(one, chance.choice([30, 60, 90]))
        case _:
            return chance.choice([united(one, other), joined(one, other, chance)])


def drawn_graph(chance: random.Random, roots: Sequence[str]) -> Graph:
    """Up to three levels over the roots, and windows over all of them."""
    graph: Graph = {}
    names = (f"d{number}" for number in count())
    known = list(roots)
    for _ in range(chance.randint(1, 3)):
        one, other = chance.choice(known), chance.choice(known)
        name = next(names)
        graph[name] = drawn(chance, one, other)
        known.append(name)
    for source in known:
        graph[f"w{source}"] = window_of(source, chance.choice([30, 60, 120]))
    return graph


@dataclass
class Model:
    """Chains of roots and derivatives, brought up to date by `run`."""

    chains: dict[str, Chain]
    graph: Graph
    closeness: dict[str, Closeness]

    @classmethod
    def fresh(cls, roots: Sequence[str], graph: Graph) -> Model:
        derivatives = {
            name: Derivative(
                TransformSql(engine="spark", queries=(SqlQueryStep(query=each.text),)),
                {source: source for source in each.inputs},
            )
            for name, each in graph.items()
        }
        for each in graph.values():
            each.positions = [0] * len(each.inputs)
        readers = Readers(derivatives)
        closeness = {name: readers.closeness_of(name) for name in graph}
        return cls({name: Chain() for name in (*roots, *graph)}, graph, closeness)

    def run(self) -> None:
        for name, each in self.graph.items():
            while self._step(name, each):
                pass

    def _step(self, name: str, each: Defined) -> bool:
        chain, inputs = self.chains[name], [self.chains[one] for one in each.inputs]
        if not all(one.links for one in inputs):
            return False
        unread = [
            Unread(Interval(tuple(one.links[n:]), self._before(one, n)), is_new=n == 0)
            for one, n in zip(inputs, each.positions, strict=True)
        ]

        def is_late(number: int, data: DataSlice, promised: Timestamp) -> bool:
            records = inputs[number].records[data.physical_hash]
            return any(minute * _MINUTE < promised.ns for minute, _ in records)

        taken = one_step(unread, chain.watermark, self.closeness[name], is_late)
        ends = [n + more for n, more in zip(each.positions, taken, strict=True)]
        if ends == each.positions:
            return False
        reached = output_watermark(
            chain.watermark, [self._before(one, n) for one, n in zip(inputs, ends, strict=True)]
        )
        step = Step(
            [one.read(0, n) for one, n in zip(inputs, each.positions, strict=True)],
            [one.read(*both) for one, *both in zip(inputs, each.positions, ends, strict=True)],
            chain.watermark,
            reached,
        )
        chain.append(each.query(step), reached)
        each.positions = ends
        return True

    @staticmethod
    def _before(chain: Chain, number: int) -> Timestamp | None:
        event: Any = chain.links[number - 1][1].event if number else None
        return event.new_watermark if event else None


Files = list[tuple[list[Record], int]]
"""Records and the watermark of each file."""


def drawn_files(chance: random.Random, ids: Any, ends: Sequence[int], late: float) -> Files:
    found: Files = []
    for reached, end in pairwise([0, *ends]):
        rows: list[Record] = [(end, (next(ids),))]
        for _ in range(chance.randint(0, 3)):
            minute = chance.randint(reached, end)
            if chance.random() < late:
                minute = reached - chance.choice([1, 20, 60, 200])
            rows.append((minute, (next(ids),)))
        found.append((rows, end))
    return found


def drawn_ends(chance: random.Random, files: int) -> list[int]:
    ends, at = [], 0
    for _ in range(files):
        at += chance.choice([0, 10, 30, 60, 90, 150])
        ends.append(at)
    return ends


def drawn_runs(chance: random.Random, files: int) -> list[int]:
    """Where runs end, the last at the last file."""
    return sorted({files, *(chance.randint(1, files) for _ in range(chance.randint(0, files)))})


def results(
    roots: dict[str, Files], graph: Graph, runs: Sequence[dict[str, int]]
) -> dict[str, list[Record]]:
    """What all windows hold after `runs`, each up to a number of files of each root."""
    model = Model.fresh(list(roots), graph)
    for upto in runs:
        for name, files in roots.items():
            for rows, end in files[len(model.chains[name].links) : upto[name]]:
                model.chains[name].append(rows, at(end))
        model.run()
    return {name: model.chains[name].all_records() for name in graph if name.startswith("w")}


def together(roots: dict[str, Files], runs: Sequence[int]) -> list[dict[str, int]]:
    return [dict.fromkeys(roots, upto) for upto in runs]


MANY = [*range(50), *(pytest.param(n, marks=pytest.mark.slow) for n in range(50, 1000))]


@pytest.mark.parametrize("seed", MANY)
def test_windows_below_one_root_do_not_depend_on_the_division_into_runs(seed: int) -> None:
    chance = random.Random(seed)
    roots = {"a": drawn_files(chance, count(), drawn_ends(chance, 7), late=0.3)}
    graph = drawn_graph(chance, ["a"])
    singly = results(roots, graph, together(roots, range(1, 8)))
    assert results(roots, graph, together(roots, [7])) == singly
    for _ in range(3):
        assert results(roots, graph, together(roots, drawn_runs(chance, 7))) == singly


@pytest.mark.parametrize("seed", MANY)
def test_windows_below_roots_that_move_together_do_not_either(seed: int) -> None:
    chance = random.Random(seed)
    ends, ids = drawn_ends(chance, 6), count()
    roots = {name: drawn_files(chance, ids, ends, late=0.3) for name in "ab"}
    graph = drawn_graph(chance, ["a", "b"])
    singly = results(roots, graph, together(roots, range(1, 7)))
    assert results(roots, graph, together(roots, [6])) == singly
    assert results(roots, graph, together(roots, drawn_runs(chance, 6))) == singly


@pytest.mark.parametrize("seed", MANY)
def test_windows_that_read_several_roots_themselves_never_do(seed: int) -> None:
    chance = random.Random(seed)
    ids = count()
    roots = {name: drawn_files(chance, ids, drawn_ends(chance, 6), late=0.3) for name in "ab"}
    rows = "SELECT event_time, id FROM"
    both = Defined(
        ["a", "b"],
        "SELECT window.start AS event_time, count(*) AS id FROM"
        f" ({rows} a UNION ALL {rows} b) GROUP BY window(event_time, '60 minutes')",
        windows(60),
    )
    graph = {"w": both, "wofw": window_of("w", 120)}
    expected = results(roots, graph, [{"a": 6, "b": 6}])
    runs = [dict(zip("ab", each, strict=True)) for each in _apart(chance, 6)]
    assert results(roots, graph, runs) == expected


@pytest.mark.parametrize("seed", MANY)
def test_records_in_time_are_in_time_in_any_division_of_any_roots(seed: int) -> None:
    chance = random.Random(seed)
    ids = count()
    roots = {name: drawn_files(chance, ids, drawn_ends(chance, 6), late=0.0) for name in "ab"}
    graph = {
        "u": united("a", "b"),
        "m": keep_some("u", chance),
        "wu": window_of("u", 30),
        "wm": window_of("m", 60),
        "wofwu": window_of("wu", 120),
    }
    expected = results(roots, graph, [{"a": 6, "b": 6}])
    runs = [dict(zip("ab", each, strict=True)) for each in _apart(chance, 6)]
    assert results(roots, graph, runs) == expected


def _apart(chance: random.Random, files: int) -> list[tuple[int, int]]:
    """Runs in which two roots move on apart."""
    found, one, other = [], 0, 0
    while (one, other) != (files, files):
        one = min(files, one + chance.randint(0, 3))
        other = min(files, other + chance.randint(0, 3))
        found.append((one, other))
    return found


def test_nothing_is_divided_where_nothing_is_late() -> None:
    chance = random.Random(1)
    roots = {"a": drawn_files(chance, count(), drawn_ends(chance, 7), late=0.0)}
    graph = {
        "m": keep_some("a", chance),
        "j": Defined(
            ["m", "a"],
            "SELECT m.event_time, m.id FROM m JOIN a ON m.id = a.id"
            " AND m.event_time BETWEEN a.event_time AND a.event_time + INTERVAL 1 DAY",
            pairs(lambda a, b: a if a == b else None),
        ),
        "wm": window_of("m", 60),
        "wj": window_of("j", 60),
        "wd": window_of("wm", 120),
    }
    model = Model.fresh(["a"], graph)
    for rows, end in roots["a"]:
        model.chains["a"].append(rows, at(end))
    model.run()
    assert {len(model.chains[name].links) for name in graph} == {1}


def test_nothing_is_divided_where_no_windows_read_it() -> None:
    model = Model.fresh(["a"], {"m": keep_some("a", random.Random(1))})
    for number in range(5):
        model.chains["a"].append([(100 - number, (number,))], at(100))
    model.run()
    assert len(model.chains["m"].links) == 1
