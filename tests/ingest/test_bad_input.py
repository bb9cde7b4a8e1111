"""Bad input of every kind: an error that names the place, the chain untouched, the next run clean.

All sources are those of one project, so that two runs of apply show them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.reading import source_text
from odfbuild.survey.outcome import DatasetOutcome, Status
from tests.ingest import bad_sources, bad_text, odd_sources
from tests.ingest.bad_sources import LIMIT, Case, csv, lines
from tests.ingest.many_sources import apply, arrive, define, heads

pytestmark = pytest.mark.spark

_CONFIG = f"""\
kind: Project
version: 1
content:
  name: bad
  ingest:
    maxUnpackedBytes: {LIMIT}
    badRecords:
      skipping-*: skip
    duplicateKeys:
      keys-twice-*: warn
      keys-twice-the-last: last
"""
CASES = [*bad_sources.CASES, *bad_text.CASES, *odd_sources.CASES]
KEPT = {
    "skipping-csv": (
        csv("n BIGINT", "d DATE"),
        2,
        ["4: a row has 1 cells", "3:1: 'x'", "5:3: '2026-02-30'"],
    ),
    "skipping-ndjson": (
        lines("NdJson", "n BIGINT NOT NULL"),
        1,
        ["2: a line is not", "3: there is no value"],
    ),
    "skipping-messages": (
        lines("NdJson", "n BIGINT"),
        2,
        ["2: line 2 of", "holds bytes that are not UTF-8", "more than one JSON object"],
    ),
    "skipping-other-messages": (
        lines("NdJson", "n BIGINT"),
        1,
        ["2:1: line 2 of", "nested deeper than 100", "half of a character"],
    ),
    "skipping-json": (lines("Json", "n BIGINT"), 1, [" (record 2): "]),
    "skipping-features": (lines("GeoJson", "n BIGINT", "geometry STRING"), 1, [" (feature 1): "]),
    "skipping-everything": (csv("n BIGINT"), 0, ["2:1: 'x'", "3:1: 'y'"]),
}
"""Sources whose bad records are skipped: read step, records that stay, what is said of others."""
MIXED = {
    "skipping-csv": b"n,d\n1,2026-01-01\nx,2026-01-01\n3\n4,2026-02-30\n5,2026-01-01\n",
    "skipping-ndjson": b'{"n": 1}\n{"n"\n{}\n',
    "skipping-messages": b'{"n": 1}\n{"t": "\xff"}\n{"n": 2}{"n": 3}\n{"t": "\xfe"}\n{"n": 5}\n',
    "skipping-other-messages": b'{"n": 1}\n[{"n": 4}]\n{"t": '
    + b"[" * 100
    + b"]" * 100
    + b'}\n{"t": "\\ud83d"}\n',
    "skipping-json": b'[{"n": 1}, {"n": "x"}]',
    "skipping-features": bad_text.to_bytes(
        {**bad_text.COLLECTION, "features": [{"type": "Feature"}, bad_text.FEATURE]}
    ),
    "skipping-everything": b"n\nx\ny\n",
}


@dataclass(frozen=True)
class Runs:
    """What became of all sources while they were bad, and once they were corrected."""

    bad: dict[str, DatasetOutcome]
    corrected: dict[str, DatasetOutcome]
    heads: tuple[dict[str, bytes], ...]
    data: dict[str, list[pa.Table]]


@pytest.fixture(scope="module")
def runs(spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("bad")
    (root / "odfbuild.yaml").write_text(_CONFIG, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_text, "LONGEST_LINE", 1 << 20)
        right = [case for case, _ in odd_sources.RIGHT]
        for case in (*CASES, *right):
            if case.before is not None:
                define(root, case)
                arrive(root, case, "1", case.before)
        apply(root, spark_engine)
        before = heads(root)
        for case in (*CASES, *right):
            define(root, case)
            arrive(root, case, "2", case.bad)
        for name, (read, _, _) in KEPT.items():
            case = Case(name, MIXED[name], b"", None, "", read=read)
            define(root, case)
            arrive(root, case, "1", case.bad)
        bad = apply(root, spark_engine)
        after = heads(root)
        for case in CASES:
            arrive(root, case, "2" if case.code else "3", case.good)
        corrected = apply(root, spark_engine)
    return Runs(
        {d.name: d for d in bad.datasets},
        {d.name: d for d in corrected.datasets},
        (before, after, heads(root)),
        {
            case.name: [pq.read_table(f) for f in root.glob(f"chains/{case.name}/data/*")]
            for case in right
        },
    )


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_bad_input_is_named_with_its_place_and_leaves_the_chain_as_it_was(
    case: Case, runs: Runs
) -> None:
    outcome = runs.bad[case.name]
    before, after, _ = (heads.get(case.name) for heads in runs.heads)
    corrected = runs.corrected[case.name]
    assert (corrected.status, corrected.error) == (Status.COMMITTED, None)
    assert corrected.records > 0
    if case.code is None:
        assert outcome.error is None
        return
    error = outcome.error
    assert error is not None
    assert error.code == case.code, error
    said = "\n".join((error.message, *error.notes, str(error.location)))
    assert f"data/{case.name}/2" in said
    assert case.says in said
    assert error.help
    if case.line is not None:
        assert error.location is not None
        assert error.location.file == f"data/{case.name}/2"
        assert error.location.line == case.line
    assert after == before


def test_a_key_with_several_records_is_told_or_settled_as_the_project_says(runs: Runs) -> None:
    outcome = runs.bad["keys-twice-in-a-state"]
    assert outcome.warnings == (
        "1 primary key of 'data/keys-twice-in-a-state/2' has more than one record: "
        "id 1 (line 2, line 3)",
    )
    assert runs.bad["keys-twice-the-last"].warnings == ()


@pytest.mark.parametrize("name", KEPT)
def test_bad_records_are_skipped_and_counted_where_the_project_says_so(
    name: str, runs: Runs
) -> None:
    _, records, said = KEPT[name]
    outcome = runs.bad[name]
    assert outcome.error is None
    assert (outcome.records, outcome.skipped.total) == (records, len(said))
    shown = [f"{bad.location}: {bad.reason}" for bad in outcome.skipped.examples]
    for each in said:
        assert any(line.startswith(f"data/{name}/1") and each in line for line in shown), shown
    assert name not in runs.corrected


SYSTEM = ("offset", "op", "system_time", "event_time")


@pytest.mark.parametrize("case, rows", [pytest.param(*r, id=r[0].name) for r in odd_sources.RIGHT])
def test_what_only_looks_wrong_is_read_as_it_is_written(
    case: Case, rows: list[object], runs: Runs
) -> None:
    assert runs.bad[case.name].error is None
    found = []
    for table in runs.data[case.name]:
        kept = table.select([name for name in table.column_names if name not in SYSTEM])
        found += [tuple(row.values()) for row in kept.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
