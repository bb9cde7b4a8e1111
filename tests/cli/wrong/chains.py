"""Chains that something else wrote: blocks that break rules, files that are not as blocks say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.identity import DatasetAlias
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataField,
    DataSchema,
    DataSlice,
    DataTypeInt64,
    DataTypeList,
    DataTypeString,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    FetchStepEthereumLogs,
    MergeStrategyAppend,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    ReadStepNdJson,
    Seed,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from tests.apply.tiny import QUERY, Tiny
from tests.cli.wrong.spoil import (
    PUSHED,
    PUSHED_TO,
    Case,
    Flaw,
    Spoil,
    block_file,
    both,
    called,
    config,
    data_file,
    move_back,
    put,
    said,
    saved,
)


@dataclass(frozen=True)
class Chain:
    """A chain that a foreign event comes to."""

    tiny: Tiny
    store: DatasetStore
    state: Projection

    def added(self, first: int, last: int, **more: Any) -> AddData:
        """Records with these offsets, after those that are there."""
        prev = more.pop("prev_offset", self.state.last_offset)
        watermark = more.pop("new_watermark", self.state.watermark)
        hash = Multihash.sha3_256(b"no such file")
        piece = DataSlice(
            logical_hash=hash,
            physical_hash=hash,
            offset_interval=OffsetInterval(start=first, end=last),
            size=1,
        )
        return AddData(prev_offset=prev, new_data=piece, new_watermark=watermark, **more)

    def executed(self, **changes: Any) -> ExecuteTransform:
        """A step that consumes nothing new, with changes to what it says of its input."""
        (left,) = self.state.inputs
        same = replace(
            left,
            prev_block_hash=left.new_block_hash,
            prev_offset=left.new_offset,
            new_block_hash=None,
            new_offset=None,
        )
        return ExecuteTransform(
            query_inputs=(replace(same, **changes),),
            prev_offset=self.state.last_offset,
            new_watermark=Timestamp.parse("2030-01-01T00:00:00Z"),
        )


def foreign(make: Callable[[Chain], MetadataEvent], dataset: str = "root", **fields: Any) -> Spoil:
    """Append a block that no rule was asked about; `fields` are of the block."""

    def spoil(tiny: Tiny) -> None:
        workspace, name = tiny.workspace(), called(tiny, dataset)
        state = workspace.projection(name)
        assert state is not None
        store = workspace.dataset(name)
        made = make(Chain(tiny, store, state))
        block = MetadataBlock(
            system_time=fields.get("system_time", Timestamp.now()),
            prev_block_hash=fields.get("prev_block_hash", state.head),
            sequence_number=fields.get("sequence_number", state.blocks),
            event=made,
        )
        head = store.put_block(encode_block(block))
        (store.path / "refs" / "head").write_text(str(head))

    return spoil


def query(text: str | None = QUERY, alias: str | None = None) -> SqlQueryStep:
    return SqlQueryStep(query=text or "", alias=alias)


def transform(chain: Chain, *inputs: TransformInput, **sql: Any) -> SetTransform:
    """A transformation, of the inputs that are in force where none are given."""
    old = chain.state.transform
    assert old is not None
    wanted = {"queries": (query(),), **sql}
    return SetTransform(
        inputs=inputs or old.inputs, transform=TransformSql(engine="spark", **wanted)
    )


def polling(chain: Chain, **changes: Any) -> SetPollingSource:
    source = chain.state.polling_source
    assert source is not None
    return replace(source, **changes)


def same_schema(chain: Chain) -> SetDataSchema:
    """The schema in force, in the form of today."""
    from odfbuild.odf.schema.arrow_schema import schema_of, to_odf

    schema = chain.state.schema
    assert schema is not None
    return SetDataSchema(schema=schema.schema or to_odf(schema_of(schema)))


PUSH = AddPushSource(source_name="p", read=ReadStepNdJson(), merge=MergeStrategyAppend())
TEXT = DataField(name="id", type=DataTypeString())


def deep(levels: int) -> DataSchema:
    kind: Any = DataTypeInt64()
    for _ in range(levels):
        kind = DataTypeList(item_type=kind)
    return DataSchema(fields=(DataField(name="deep", type=kind),))


def broken(code: str, make: Callable[[Chain], MetadataEvent], **more: Any) -> Flaw:
    """A foreign block that breaks a rule."""
    return Flaw(code, foreign(make, **more), more.get("dataset", "root"))


EARLY = Timestamp.parse("2001-01-01T00:00:00Z")

BROKEN = (
    broken("E0601", lambda c: SetInfo(description="x"), prev_block_hash=None, sequence_number=0),
    broken(
        "E0602",
        lambda c: Seed(dataset_id=c.state.dataset_id, dataset_kind=c.state.kind),
    ),
    broken("E0604", lambda c: SetInfo(description="x"), sequence_number=40),
    broken("E0605", lambda c: SetInfo(description="x"), system_time=EARLY),
    broken("E0606", lambda c: c.added(3, 3, new_watermark=EARLY)),
    broken("E0607", lambda c: c.added(7, 7)),
    broken("E0608", lambda c: c.added(3, 1)),
    broken("E0609", lambda c: AddData(prev_offset=2)),
    broken("E0612", lambda c: c.added(5, 5, prev_offset=4)),
    broken("E0614", lambda c: c.added(3, 3, prev_checkpoint=Multihash.sha3_256(b"x"))),
    broken(
        "E0615",
        lambda c: AddData(
            prev_offset=2, new_watermark=c.state.watermark, new_source_state=c.state.source_state
        ),
    ),
    broken(
        "E0616",
        lambda c: ExecuteTransform(
            query_inputs=(), prev_offset=2, new_watermark=Timestamp.parse("2030-01-01T00:00:00Z")
        ),
    ),
    broken(
        "E0617",
        lambda c: replace(c.executed(), new_watermark=c.state.watermark),
        dataset="derived",
    ),
    broken("E0630", lambda c: replace(c.executed(), query_inputs=()), dataset="derived"),
    broken(
        "E0631",
        lambda c: c.executed(new_block_hash=c.state.inputs[0].new_block_hash),
        dataset="derived",
    ),
    broken(
        "E0632",
        lambda c: c.executed(new_offset=c.state.inputs[0].new_offset),
        dataset="derived",
    ),
    broken(
        "E0633",
        lambda c: c.executed(prev_block_hash=Multihash.sha3_256(b"x")),
        dataset="derived",
    ),
    broken("E0634", lambda c: c.executed(prev_offset=0), dataset="derived"),
    broken("E0635", lambda c: c.executed(new_offset=9), dataset="derived"),
    broken("E0640", lambda c: transform(c, query="SELECT 1", queries=None), dataset="derived"),
    broken("E0641", lambda c: transform(c, queries=None), dataset="derived"),
    broken("E0642", lambda c: transform(c, queries=(query(alias="a"),)), dataset="derived"),
    broken("E0643", lambda c: transform(c, queries=(query(), query())), dataset="derived"),
    broken("E0644", lambda c: polling(c, fetch=FetchStepEthereumLogs(filter="address = X'00'"))),
    broken(
        "E0645",
        lambda c: polling(
            c, read=ReadStepNdJson(ddl_schema=("a INT",), schema=DataSchema(fields=()))
        ),
    ),
    broken("E0647", lambda c: PUSH),
    broken("E0650", lambda c: DisablePushSource(source_name="nowhere")),
    broken(
        "E0652",
        lambda c: transform(c, TransformInput(dataset_ref=DatasetAlias.parse("root"), alias="s")),
        dataset="derived",
    ),
    broken(
        "E0653",
        lambda c: transform(c, TransformInput(dataset_ref=c.state.inputs[0].dataset_id)),
        dataset="derived",
    ),
    broken(
        "E0654",
        lambda c: transform(
            c,
            *(
                TransformInput(dataset_ref=c.state.inputs[0].dataset_id, alias=alias)
                for alias in "ab"
            ),
        ),
        dataset="derived",
    ),
    broken("E0656", lambda c: SetDataSchema(schema=DataSchema(fields=(TEXT,)))),
    broken("E0657", lambda c: SetDataSchema(schema=deep(40))),
    broken("E0658", lambda c: SetDataSchema()),
    broken("E0659", lambda c: SetDataSchema(raw_arrow_schema=b"no schema")),
)

FOREIGN_TWICE = (
    Flaw("E0655", both(foreign(same_schema), foreign(same_schema))),
    Flaw(
        "E0649",
        both(
            foreign(lambda c: DisablePollingSource()),
            foreign(lambda c: DisablePollingSource()),
        ),
    ),
    Flaw(
        "E0646",
        both(
            foreign(lambda c: DisablePollingSource()),
            foreign(lambda c: PUSH),
            foreign(
                lambda c: SetPollingSource(
                    fetch=FetchStepEthereumLogs(filter="address = X'00'", chain_id=1),
                    read=ReadStepNdJson(),
                    merge=MergeStrategyAppend(),
                )
            ),
        ),
    ),
    Flaw(
        "E0648",
        both(
            foreign(lambda c: DisablePollingSource()),
            foreign(lambda c: PUSH),
            foreign(lambda c: PUSH),
        ),
    ),
    Flaw(
        "E0651",
        foreign(
            lambda c: SetTransform(
                inputs=(), transform=TransformSql(engine="spark", queries=(query(),))
            ),
            dataset="derived",
        ),
        "derived",
    ),
)


def with_file(
    make: Callable[[Chain], bytes], first: int = 3, last: int = 3
) -> Callable[[Chain], MetadataEvent]:
    """Records in a file of these bytes, which is what the block says but for its content."""

    def event(chain: Chain) -> MetadataEvent:
        data = make(chain)
        hash = Multihash.sha3_256(data)
        chain.store.object_path("data", hash).write_bytes(data)
        added = chain.added(first, last)
        assert added.new_data is not None
        return replace(added, new_data=replace(added.new_data, physical_hash=hash, size=len(data)))

    return event


def parquet_from(offset: int) -> Callable[[Chain], bytes]:
    """The first record of a dataset again, at another offset."""

    def make(chain: Chain) -> bytes:
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        (file,) = (chain.store.path / "data").iterdir()
        table = pq.read_table(file).slice(0, 1)
        place = table.schema.get_field_index("offset")
        moved = pa.array([offset], table.schema.field("offset").type)
        out = io.BytesIO()
        pq.write_table(table.set_column(place, table.schema.field("offset"), moved), out)
        return out.getvalue()

    return make


def unreadable_block(tiny: Tiny) -> None:
    """A head that is what it says it is, and no block."""
    store = tiny.workspace().dataset(called(tiny, "root"))
    (store.path / "refs" / "head").write_text(str(store.put_block(b"no block at all")))
    shutil.rmtree(tiny.root / ".odfbuild", ignore_errors=True)


def no_head(tiny: Tiny) -> None:
    put(f"chains/{called(tiny, 'root')}/refs/head", "no hash")(tiny)


def early_head(tiny: Tiny) -> None:
    put(f"chains/{called(tiny, 'root')}/refs/head", "0b18484a" * 8)(tiny)


def spoilt_page(data: bytes) -> bytes:
    """A Parquet file whose first page has a header that says nothing."""
    return data[:4] + b"\xff" * 8 + data[12:]


def pushed(name: str) -> Spoil:
    """A dataset that needs no engine to begin."""
    return put("datasets/pushed.yaml", PUSHED_TO.replace("name: pushed", f"name: {name}") + PUSHED)


BYTES: tuple[Case | Flaw, ...] = (
    broken("E0815", with_file(lambda c: b"no parquet")),
    broken("E0814", with_file(parquet_from(9))),
    broken("E0831", with_file(lambda c: spoilt_page(parquet_from(3)(c)))),
    Case(
        "E0816",
        "verify --integrity --logical root",
        foreign(with_file(parquet_from(3))),
        exit=3,
    ),
    Flaw("E0803", unreadable_block),
    Case(
        "E0613",
        "verify --integrity pushed",
        both(
            put("datasets/pushed.yaml", PUSHED_TO + PUSHED),
            said("apply", "-y"),
            foreign(lambda c: c.added(0, 0), dataset="pushed"),
        ),
        exit=3,
    ),
    Case(
        "E0806",
        "log root",
        foreign(lambda c: SetDataSchema(raw_arrow_schema=b"no schema")),
        exit=3,
    ),
    Case("E0621", "apply -y -s root/inner", pushed("root/inner")),
    Case("E0822", "verify derived", lambda tiny: shutil.rmtree(tiny.root / "chains/root"), exit=3),
)


def twin(tiny: Tiny) -> None:
    chains = tiny.root / "chains"
    shutil.copytree(chains / "root", chains / "Root")


def copied(tiny: Tiny) -> None:
    shutil.copytree(tiny.root / "chains" / "root", tiny.root / "chains" / "backup")


def occupied(tiny: Tiny) -> None:
    put("chains/pushed/data/something.parquet", "x")(tiny)


def open_keys(tiny: Tiny) -> None:
    keys = tiny.root / ".odfbuild-keys"
    keys.mkdir(exist_ok=True)
    keys.chmod(0o777)


def proof(case: str) -> Spoil:
    """A proof of the reference, by its case of the conformance vectors."""

    def spoil(tiny: Tiny) -> None:
        (request,) = (
            each["request"]
            for each in json.loads(PROOFS.read_text())["cases"]
            if each["id"] == case
        )
        (tiny.root / "proof.json").write_text(json.dumps(request))

    return spoil


def no_signer(tiny: Tiny) -> None:
    (tiny.root / "q.sql").write_text("SELECT id FROM root")
    (tiny.root / ".odfbuild-keys" / "signer.pem").write_text("no key")


PROOFS = Path(__file__).parents[2] / "conformance" / "data" / "query_proofs.json"


STORES: tuple[Case | Flaw, ...] = (
    Case("E0381", "plan", copied, exit=3),
    Case("E0620", "plan", twin),
    Case("E0622", "apply -y -s pushed", both(pushed("pushed"), occupied), fresh=True),
    Case(
        "E0701",
        "apply plan.json",
        both(lambda tiny: tiny.arrive(2), saved, move_back("root")),
        exit=5,
    ),
    Flaw("E0801", block_file("root", lambda f: f.write_bytes(b"x"))),
    Flaw("E0802", block_file("root", Path.unlink)),
    Flaw("E0805", no_head),
    Flaw("E0830", early_head),
    Flaw("E0811", data_file("root", Path.unlink)),
    Flaw("E0812", data_file("root", lambda f: f.write_bytes(b"x"))),
    Flaw("E0813", data_file("root", lambda f: f.write_bytes(bytes(len(f.read_bytes()))))),
    Case(
        "E0817",
        "verify --proof proof.json",
        proof("query_proof/verify-bad-signature"),
        exit=3,
    ),
    Case("E0818", "verify --proof proof.json", proof("query_proof/verify-ok")),
    Case("E0819", "verify --proof odfbuild.yaml"),
    Case("E0910", "plan -o nowhere/plan.json"),
    Case("E0911", "storage push", config("  storage: odfbuild.yaml\n")),
    Case("E0930", "apply -y -s pushed", both(pushed("pushed"), open_keys), fresh=True),
    Case("E0931", "sql -f q.sql --prove a.json", no_signer),
)
