import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import BadRecord, Skipped
from odfbuild.errors import IngestError, Location
from odfbuild.inspect.verify.finding import Finding
from odfbuild.odf.model import SetDataSchema
from odfbuild.odf.records import records_to_data
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.report.chain import log_to_data, render_log
from odfbuild.report.datasets import datasets_to_data, render_datasets, statuses
from odfbuild.report.findings.verification import findings_to_data, render_findings
from odfbuild.report.forms.words import size
from odfbuild.report.outcome import outcome_to_data, render_outcome
from odfbuild.report.records.table import render_records
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status
from odfbuild.wording import count
from tests.plan.worlds import World, hash_of, news, pipeline
from tests.report.golden import assert_golden

NOON = datetime(2013, 1, 1, 12, 0, tzinfo=UTC)


def as_json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def states(world: World):
    return {name: chain.now for name, chain in world.chains.items()}


def test_datasets_read_like_this():
    live = {"flights": 40, "late": None, "worst": 5}
    assert_golden("ls.txt", render_datasets(states(pipeline()), live=live))


def test_datasets_with_their_status_read_like_this():
    world = pipeline().has("flights", news()).root("planes")
    plan = world.plan()
    kinds = {dataset.name: dataset.kind for dataset in plan.datasets}
    assert_golden("ls-status.txt", render_datasets(states(world), statuses(plan), kinds))
    listed = datasets_to_data(states(world), statuses(plan), kinds=kinds)
    assert [each["kind"] for each in listed if each["name"] == "planes"] == ["Root"]


def test_datasets_as_json_look_like_this():
    live = {"flights": 40, "late": None, "worst": 5}
    assert_golden("ls.json", as_json(datasets_to_data(states(pipeline()), live=live)))


def test_an_empty_workspace_is_said_to_be_empty():
    assert render_datasets({}) == "There are no datasets yet."


def blocks(name: str):
    chain = pipeline().chains[name]
    return tuple(reversed(chain.blocks.items()))


@pytest.mark.parametrize("name", ["flights", "late"])
def test_a_chain_reads_like_this(name):
    assert_golden(f"log-{name}.txt", render_log(blocks(name)))


def test_a_chain_as_json_looks_like_this():
    assert_golden("log-late.json", as_json(log_to_data(blocks("late"))))


def test_an_arrow_schema_is_shown_as_columns():
    schema = pa.schema([pa.field("offset", pa.int64(), nullable=False), ("id", pa.string())])
    chain = pipeline().chains["flights"]
    chain.append(SetDataSchema(raw_arrow_schema=to_raw(schema)))
    text = render_log(tuple(reversed(chain.blocks.items()))[:1])
    assert text.splitlines()[-2:] == ["    offset: int64 not null", "    id: string"]


RECORDS = pa.table(
    {
        "offset": pa.array([7, 8, 9, 10], pa.int64()),
        "op": pa.array([0, 1, 2, 3], pa.int32()),
        "event_time": pa.array([NOON] * 4, pa.timestamp("ms", "UTC")),
        "name": ["short", None, "x" * 60, "two\nlines"],
        "price": pa.array([Decimal("1.50")] * 4, pa.decimal128(6, 2)),
        "ratio": [0.5, float("nan"), None, 2.0],
        "day": pa.array([date(2013, 1, 1)] * 4),
        "ok": [True, False, None, True],
        "raw": pa.array([b"\x00\x01"] * 4),
        "tags": [["a", "b"], [], None, ["c"]],
    }
)


def test_records_read_like_this():
    assert_golden("tail.txt", render_records(RECORDS))


def test_records_as_json_look_like_this():
    assert_golden("tail.json", as_json(records_to_data(RECORDS)))


def outcome() -> ApplyOutcome:
    error = IngestError("line 3 has 2 columns, 5 are declared", code="E0401", help="fix it")
    return ApplyOutcome(
        datasets=(
            DatasetOutcome(
                name="flights", status=Status.COMMITTED, blocks=2, records=28_330, seconds=4.2
            ),
            DatasetOutcome(
                name="noisy",
                status=Status.COMMITTED,
                blocks=1,
                records=97,
                skipped=Skipped(
                    {"column 'n'": 2, "the form of the record": 1},
                    (
                        BadRecord(
                            "'x' in column 'n' is not BIGINT",
                            Location("data/noisy.csv", 3, 5),
                            "column 'n'",
                        ),
                        BadRecord(
                            "a row has 2 cells where 5 are expected", Location("a.zip!b.csv", 9)
                        ),
                    ),
                ),
            ),
            DatasetOutcome(name="late", status=Status.NOOP, because="its inputs did not advance"),
            DatasetOutcome(name="planes", status=Status.FAILED, error=error),
            DatasetOutcome(name="old", status=Status.SKIPPED, because="'planes' did not complete"),
            DatasetOutcome(name="w", status=Status.LOST, because="it moved since the plan"),
        )
    )


def test_the_end_of_an_apply_reads_like_this():
    assert_golden("apply.txt", render_outcome(outcome()))


def test_the_end_of_an_apply_as_json_looks_like_this():
    assert_golden("apply.json", as_json(outcome_to_data(outcome())))


FINDING = Finding(
    dataset="flights",
    code="E0801",
    message="block 3 is not what its name says",
    help="restore the file",
    block=hash_of("b"),
    sequence_number=3,
    path=Path("chains/flights/blocks/f16"),
)


def test_damage_reads_like_this():
    assert_golden("verify.txt", render_findings(["flights", "late"], [FINDING]))


def test_damage_as_json_looks_like_this():
    assert_golden("verify.json", as_json(findings_to_data(["flights", "late"], [FINDING])))


def test_whole_datasets_are_said_to_be_whole():
    text = render_findings(["a"], [])
    assert text == "Verified 1 dataset: all blocks and objects are intact."


@pytest.mark.parametrize(
    "number, text",
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (40_300, "40.3 KB"), (999_960, "1.0 MB")],
)
def test_sizes_have_one_digit(number, text):
    assert size(number) == text


def test_one_is_singular():
    assert [count(1, "record"), count(12_400, "record")] == ["1 record", "12,400 records"]
