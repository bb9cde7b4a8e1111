"""Family `writer_scenarios`: rounds of ingestion, from CSV to committed blocks, through Spark."""

from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.errors import OdfbuildError
from odfbuild.odf.digest import physical_hash
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DatasetKind,
    FetchStepUrl,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    MetadataEvent,
    ReadStepCsv,
    SetDataSchema,
    SetPollingSource,
    SetVocab,
    SourceState,
)
from odfbuild.odf.schema.arrow_schema import schema_of, to_odf, to_raw
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.yaml_form import from_data, to_data
from odfbuild.store.workspace import Workspace
from tests.conformance.arrow_values import type_of
from tests.conformance.vectors import cases

START = Timestamp.parse("2010-01-01T00:00:00Z")
ERRORS = {
    "IncompatibleSchema": {"E0432", "E0521", "E0522"},
    "ExecutionError": {"E0520"},
    "BadInputSchema": {"E0430", "E0431", "E0433", "E0434"},
    "DanglingReference": {"E0435"},
}

LINK = {"opendatafabric.org/type": '{"kind": "ObjectLink", "linkType": {"kind": "Multihash"}}'}
_SYSTEM = (
    "offset int64 required",
    "op int32 required",
    "system_time timestamp[ms,UTC] required",
    "event_time timestamp[ms,UTC] required",
)


def _schema(specs):
    fields = []
    for spec in specs:
        name, kind, need, *link = spec.split()
        found = pa.date32() if kind == "date" else type_of(kind)
        fields.append(pa.field(name, found, need == "optional", LINK if link else None))
    return pa.schema(fields)


def merge_of(spec):
    key = tuple(spec.get("primary_key") or ())
    match spec["kind"]:
        case "Append":
            return MergeStrategyAppend()
        case "Ledger":
            return MergeStrategyLedger(primary_key=key)
        case "Snapshot":
            compare = spec.get("compare_columns")
            return MergeStrategySnapshot(
                primary_key=key, compare_columns=None if compare is None else tuple(compare)
            )
        case "ChangelogStream":
            return MergeStrategyChangelogStream(primary_key=key)
        case "UpsertStream":
            return MergeStrategyUpsertStream(primary_key=key)
    raise AssertionError(spec)


class Dataset:
    """One root dataset that grows by transactions, as `apply` makes them."""

    def __init__(self, folder, engine, merge):
        self.folder = folder
        self.engine = engine
        self.merge = merge
        self.workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
        self.rounds = 0
        read = ReadStepCsv(header=True)
        source = SetPollingSource(fetch=FetchStepUrl(url="file:x"), read=read, merge=merge)
        self.commit(source)

    @property
    def base(self):
        return self.workspace.projection("tests")

    def transaction(self, time):
        base = self.base if self.rounds else None
        self.rounds += 1
        return Transaction(self.workspace, "tests", DatasetKind.Root, base, time)

    def commit(self, *events):
        transaction = self.transaction(self.base.system_time if self.rounds else START)
        transaction.add(*events)
        transaction.commit()

    def write(self, step):
        """The events that a file leads to, committed; `None` when there are none."""
        read = ReadStepCsv(header=True)
        if step.get("csv_schema"):
            read = replace(read, schema=to_odf(_schema(step["csv_schema"])))
        state = step.get("source_state")
        scratch = self.folder / f"round-{self.rounds}"
        scratch.mkdir()
        file = scratch / "source.csv"
        file.write_text(step["csv"] or "", "utf-8")
        transaction = self.transaction(Timestamp.parse(step["system_time"]))
        source = replace(transaction.state.polling_source, read=read)
        arrival = Arrival(
            source=source,
            file=file,
            display_name="source.csv",
            event_time=Timestamp.parse(step["source_event_time"]),
            blank_event_times="fill",
            source_state=state
            and SourceState(
                source_name=state["sourceName"], kind=state["kind"], value=state["value"]
            ),
        )
        stage_ingest(transaction, lambda: self.engine, arrival, scratch)
        transaction.commit()
        return transaction.events


def _rows(file):
    table = pq.read_table(file)
    rows = [[_json(value) for value in row.values()] for row in table.to_pylist()]
    return {"columns": table.column_names, "rows": rows}


def _json(value):
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal) or value != value:  # NaN, which JSON cannot spell
        return str(value)
    return value


ROUNDS = [one for one in cases("writer_scenarios") if "rounds" in (one.values[0] or {})]


@pytest.mark.spark
@pytest.mark.parametrize("case", ROUNDS)
def test_rounds_of_writes_leave_the_blocks_and_records_of_the_reference(
    case, spark_engine, tmp_path
):
    dataset = Dataset(tmp_path, spark_engine, merge_of(case["merge"]))
    legacy = "legacy" in (case.get("note") or "")
    if case.get("initial_schema"):
        dataset.commit(SetDataSchema(schema=to_odf(_schema(case["initial_schema"]))))
    for step in case["rounds"]:
        if step["op"] == "commit_schema":
            schema = _schema(step["schema"])
            event = SetDataSchema(schema=to_odf(schema))
            if legacy:
                event, legacy = SetDataSchema(raw_arrow_schema=to_raw(schema)), False
            dataset.commit(event)
        else:
            _check_write(dataset, step)


def _check_write(dataset, step):
    expected = step["expected"]
    before = dataset.base
    error = expected.get("error")
    if error == "EmptyCommit":
        assert dataset.write(step) == []
        return
    if error:
        with pytest.raises(OdfbuildError) as caught:
            dataset.write(step)
        assert caught.value.code in ERRORS.get(error, {caught.value.code})
        assert dataset.base == before
        return
    events = dataset.write(step)
    assert any(isinstance(event, SetDataSchema) for event in events) == expected["new_schema"]
    data = next((event for event in events if isinstance(event, AddData)), None)
    assert (data is not None) == expected["add_data"]
    state = dataset.base
    if "schema" in expected:
        assert schema_of(state.schema).equals(_schema(expected["schema"]))
    watermark = expected["watermark"]
    assert state.watermark == (watermark and Timestamp.parse(watermark))
    if expected.get("data") is None:
        assert data is None or data.new_data is None
        return
    new = data.new_data
    found = dataset.workspace.dataset("tests").object_path("data", new.physical_hash)
    assert _rows(found) == expected["data"]
    interval = expected["offset_interval"]
    assert (new.offset_interval.start, new.offset_interval.end) == tuple(interval.values())
    assert str(new.logical_hash) == expected["logical_hash"]


@pytest.mark.spark
def test_links_to_objects_are_counted_and_must_lead_somewhere(spark_engine, tmp_path):
    dataset = Dataset(tmp_path, spark_engine, MergeStrategyAppend())
    columns = [*_SYSTEM, "file string optional @link"]
    dataset.commit(SetDataSchema(schema=to_odf(_schema(columns))))
    store = dataset.workspace.dataset("tests")
    staged = tmp_path / "object"
    staged.write_bytes(b"x" * 1000)
    digest, _ = physical_hash(staged)
    times = {"system_time": "2010-01-01T12:00:00Z", "source_event_time": "2000-01-01T12:00:00Z"}
    step = {**times, "csv_schema": ["file string optional"]}
    linked = {**step, "csv": f"file\n{digest}\n{digest}\n\n"}
    before = dataset.base
    for wrong in (linked["csv"], "file\nno hash\n"):
        with pytest.raises(OdfbuildError) as caught:
            dataset.write({**step, "csv": wrong})
        assert caught.value.code == "E0435"
        assert dataset.base == before
    store.put_object("data", staged, digest)
    (event,) = dataset.write(linked)
    counts = {"numObjectsNaive": 2, "sizeNaive": 2000}
    assert event.extra == {"opendatafabric.org/linkedObjects": counts}


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [one for one in cases("writer_scenarios") if "csv" in (one.values[0] or {})]
)
def test_a_slice_has_the_layout_of_the_reference(case, spark_engine, tmp_path):
    dataset = Dataset(tmp_path, spark_engine, merge_of(case["merge"]))
    times = {"system_time": "2010-01-01T12:00:00Z", "source_event_time": "2000-01-01T12:00:00Z"}
    events = dataset.write({**case, **times})
    hash_of_file = events[-1].new_data.physical_hash
    found = pq.ParquetFile(dataset.workspace.dataset("tests").object_path("data", hash_of_file))
    expected = case["expected"]
    assert found.metadata.num_row_groups == expected["row_groups"]
    assert found.schema_arrow.names == expected["columns_in_order"]
    group = found.metadata.row_group(0)
    for index, name in enumerate(found.schema_arrow.names):
        column = group.column(index)
        assert column.compression == expected["compression"]
        if name in expected["data_page_encoding"]:
            assert expected["data_page_encoding"][name] in column.encodings


@pytest.mark.parametrize(
    "case", [one for one in cases("writer_scenarios") if "chain" in (one.values[0] or {})]
)
def test_what_a_writer_reads_from_a_chain(case, tmp_path):
    workspace = Workspace(tmp_path / "chains", tmp_path / "keys", tmp_path / "cache")
    seed = Transaction(workspace, "tests", DatasetKind.Root, None, START)
    seed.add(*[_event(spec) for spec in case["chain"][1:]])
    seed.commit()
    state, expected = workspace.projection("tests"), case["expected"]
    sources = [state.polling_source, *state.push_sources.values()]
    source = next((one for one in sources if one), None)
    assert (source is not None) == expected["has_source"]
    assert (source.merge.KIND if source else "Append") == expected["merge"]
    time = state.vocab and state.vocab.event_time_column
    assert (time or "event_time") == expected["event_time_column"]
    wanted = expected["schema"]
    assert (state.schema and schema_of(state.schema)) == (wanted and _schema(wanted))
    facts = (state.last_offset, state.last_checkpoint, state.watermark, state.source_state)
    keys = ("prev_offset", "prev_checkpoint", "prev_watermark", "prev_source_state")
    assert tuple(map(_plain, facts)) == tuple(expected[key] for key in keys)


def _plain(fact):
    if isinstance(fact, SourceState):
        return to_data(fact)
    return fact if fact is None or isinstance(fact, int) else str(fact)


def _event(spec):
    match spec["kind"]:
        case "SetVocab":
            return SetVocab(event_time_column=spec["eventTimeColumn"])
        case "SetPollingSource":
            fetch, read = FetchStepUrl(url="file:x"), ReadStepCsv()
            return SetPollingSource(fetch=fetch, read=read, merge=merge_of(spec["merge"]))
        case "AddPushSource":
            read = ReadStepCsv()
            return AddPushSource(source_name="x", read=read, merge=merge_of(spec["merge"]))
        case "SetDataSchema" if isinstance(spec.get("schema"), list):
            return SetDataSchema(schema=to_odf(_schema(spec["schema"])))
    return from_data(MetadataEvent, spec)
