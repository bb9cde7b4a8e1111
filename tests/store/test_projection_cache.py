import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.chain import projection as fold
from odfbuild.odf.chain.projection import Projection, QueryEra
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    Checkpoint,
    DataField,
    DatasetKind,
    DataSlice,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepFilesGlob,
    MergeStrategyLedger,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    ReadStepCsv,
    Seed,
    SetPollingSource,
    SetTransform,
    SourceOrdering,
    SourceState,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.cache import ProjectionCache, project
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import packed, unpacked
from tests.store.chains import NOW, SCHEMA, create, info, workspace


def rich() -> Projection:
    """A projection with something of every shape in it."""
    return Projection(
        dataset_id=DatasetId(bytes(range(32))),
        kind=DatasetKind.Derivative,
        head=Multihash.sha3_256(b"head"),
        blocks=7,
        system_time=NOW,
        polling_source=SetPollingSource(
            fetch=FetchStepFilesGlob(path="*.csv", order=SourceOrdering.ByName),
            read=ReadStepCsv(header=True, ddl_schema=("a INT", "b STRING")),
            preprocess=TransformSql(engine="spark", queries=(SqlQueryStep(query="select 1"),)),
            merge=MergeStrategyLedger(primary_key=("a",)),
        ),
        push_sources={
            "p": AddPushSource(
                source_name="p", read=ReadStepCsv(), merge=MergeStrategyLedger(primary_key=())
            )
        },
        transform=SetTransform(
            inputs=(TransformInput(dataset_ref=DatasetAlias("x", "acme"), alias="x"),),
            transform=TransformSql(engine="spark"),
        ),
        schema=replace(
            SCHEMA,
            schema=replace(
                SCHEMA.schema,
                fields=(
                    DataField(
                        name="n",
                        type=DataTypeString(),
                        extra={"list": [1, "two", {"three": [3.5, None, True]}]},
                    ),
                    DataField(
                        name="s",
                        type=DataTypeOption(
                            inner=DataTypeStruct(
                                fields=(
                                    DataField(name="x", type=DataTypeString(), extra={"y": []}),
                                )
                            )
                        ),
                    ),
                ),
            ),
        ),
        eras=(QueryEra(1, 0, 9), QueryEra(4, 10, 12)),
        ever_ran=True,
    )


def full(store: DatasetStore) -> Projection:
    """The projection computed from all blocks, without any cache."""
    blocks = list(store.walk(store.head()))[::-1]
    state = fold.start(*blocks[0])
    for hash, block in blocks[1:]:
        state = fold.advance(state, hash, block)
    return state


def test_a_loaded_projection_equals_the_kept_one_and_every_field_of_it() -> None:
    before = rich()
    loaded = unpacked(Projection, packed(before))
    assert loaded == before
    assert loaded != replace(before, blocks=8)
    assert repr(loaded) == repr(before)
    assert loaded.schema.schema.fields[0].extra == before.schema.schema.fields[0].extra


def test_a_chain_with_times_that_do_not_fit_is_read_again(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for alias, year in (("a", 2024), ("b", 9999)):
        store = create(space, alias)
        last = Timestamp.from_datetime(datetime(year, 12, 31, tzinfo=UTC))
        store.append(store.head(), (AddData(new_watermark=last),), NOW)
    expected = space.projections()
    assert str(expected["b"].watermark) == "9999-12-31T00:00:00Z"
    assert workspace(tmp_path).projections() == expected
    cache = ProjectionCache(space.cache)
    cache.load()
    assert cache.latest("a") == expected["a"]
    assert cache.latest("b") is None


def test_projections_are_the_same_with_a_cold_a_warm_and_an_extended_cache(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    stores = {alias: create(space, alias, info(alias)) for alias in ("a", "b", "c")}
    cold = space.projections()
    assert cold == {alias: full(store) for alias, store in stores.items()}
    assert workspace(tmp_path).projections() == cold
    stores["b"].append(stores["b"].head(), (info("more"), info("and more")), NOW)
    extended = workspace(tmp_path).projections()
    assert extended == {alias: full(store) for alias, store in stores.items()}
    assert workspace(tmp_path).projections(["B", "nowhere"]) == {"b": extended["b"]}


def test_an_extended_projection_reads_only_the_new_blocks(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    store = create(space, "a", info("old"))
    space.projections()
    old = store.head()
    store.append(old, (info("new"),), NOW)
    store.block_path(old).unlink()
    assert workspace(tmp_path).projections()["a"].info == info("new")


def test_a_rewritten_history_is_projected_anew(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    store = create(space, "a", info("one"))
    base = store.head()
    store.append(base, (info("abandoned"),), NOW)
    space.projections()
    (store.path / "refs" / "head").write_text(str(base))
    DatasetStore(store.path).append(base, (info("other"), info("branch")), NOW)
    assert workspace(tmp_path).projections()["a"] == full(store)


def test_deleting_the_cache_changes_nothing(tmp_path: Path) -> None:
    import shutil

    space = workspace(tmp_path)
    create(space, "a", info("x"))
    before = space.projections()
    shutil.rmtree(space.cache)
    assert workspace(tmp_path).projections() == before
    assert space.projections() == before


def test_a_cache_with_any_byte_changed_or_cut_off_is_ignored(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    create(space, "a", info("x"))
    expected = space.projections()
    file = space.cache / "projections.bin"
    good = file.read_bytes()
    generator = random.Random(1)
    damaged = [good[:n] for n in (0, 1, 30, len(good) // 2, len(good) - 1)]
    for position in generator.sample(range(len(good)), 60):
        changed = bytearray(good)
        changed[position] ^= 1 << generator.randrange(8)
        damaged.append(bytes(changed))
    for data in damaged:
        file.write_bytes(data)
        cache = ProjectionCache(space.cache)
        cache.load()
        assert cache.latest("a") is None
        assert workspace(tmp_path).projections() == expected
        assert file.read_bytes() == good


def test_a_dataset_that_is_gone_leaves_the_cache(tmp_path: Path) -> None:
    import shutil

    space = workspace(tmp_path)
    create(space, "a")
    shutil.rmtree(create(space, "b").path)
    assert list(space.projections()) == ["a"]
    cache = ProjectionCache(space.cache)
    cache.load()
    assert cache.latest("b") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_project_is_projected_without_a_cache(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    create(space, "a")
    tmp_path.chmod(0o555)
    try:
        assert list(workspace(tmp_path).projections()) == ["a"]
    finally:
        tmp_path.chmod(0o755)


def test_reading_projections_imports_nothing_heavy(tmp_path: Path) -> None:
    create(workspace(tmp_path), "a", info("x"))
    program = (
        "import sys, pathlib\n"
        "from odfbuild.store.workspace import Workspace\n"
        f"root = pathlib.Path({str(tmp_path)!r})\n"
        "w = Workspace(root / 'chains', root / 'keys', root / 'cache')\n"
        "assert w.projections()['a'].blocks == 2\n"
        "heavy = {'numpy', 'pyarrow', 'flatbuffers', 'cryptography', 'networkx', 'jsonschema',\n"
        "         'multiformats', 'pyspark', 'sqlglot'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_skimming_older_data_blocks_changes_nothing_in_any_manifest_version(tmp_path: Path) -> None:
    generator = random.Random(7)
    for trial in range(40):
        store = DatasetStore(tmp_path / f"chain-{trial}", f"chain-{trial}")
        prev = None
        last = None
        for number in range(generator.randrange(2, 14)):
            event = _any_event(generator, number, last)
            if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
                last = event.new_data.offset_interval.end
            block = MetadataBlock(
                system_time=Timestamp(NOW.ns + number),
                prev_block_hash=prev,
                sequence_number=number,
                event=event,
            )
            prev = store.put_block(encode_block(block, version=generator.choice((2, 3))))
        store.swap_head(None, prev)
        expected = full(store)
        assert project(store, prev, None) == expected
        middle = [hash for hash, _ in store.walk(prev)][generator.randrange(2)]
        assert project(store, prev, project(store, middle, None)) == expected


def _any_event(generator: random.Random, number: int, last: int | None) -> MetadataEvent:
    if number == 0:
        return Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Derivative)
    hashes = [Multihash.sha3_256(bytes([number, n])) for n in range(4)]
    start = 0 if last is None else last + 1
    data = DataSlice(
        logical_hash=Multihash.of(0x300016, bytes(32)),
        physical_hash=hashes[0],
        offset_interval=OffsetInterval(start=start, end=start + generator.randrange(3)),
        size=generator.choice((0, 10, 1 << 40)),
    )
    choice = generator.choice
    common: dict[str, Any] = {
        "prev_offset": last,
        "new_data": choice((None, data)),
        "new_checkpoint": choice((None, Checkpoint(physical_hash=hashes[1], size=3))),
        "new_watermark": choice((None, Timestamp(generator.randrange(-(10**18), 10**18)))),
    }
    state = SourceState(source_name="s", kind="odf/etag", value=str(number))
    consumed = ExecuteTransformInput(
        dataset_id=DatasetId(bytes(32)), prev_block_hash=hashes[2], new_offset=choice((None, 0, 7))
    )
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=str(number)),))
    return choice(
        (
            AddData(**common, new_source_state=choice((None, state)), extra=choice((None, {}))),
            AddData(**common),
            ExecuteTransform(**common, query_inputs=(consumed,)),
            SetTransform(inputs=(), transform=transform),
            info(str(number)),
        )
    )
