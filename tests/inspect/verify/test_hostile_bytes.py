"""Blocks and slices that somebody made up: errors with codes, in little time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import OdfbuildError
from odfbuild.inspect.verify.check import verify
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.flatbuffers.form import MalformedBlock, decode_block
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_manifest
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.plan.changes.committed import committed_snapshot
from odfbuild.project.decode import decode_bytes
from odfbuild.records import bounds, intact
from odfbuild.records.intact import check_slice
from odfbuild.report.chain import log_to_data, render_log
from odfbuild.store.workspace import Workspace
from tests.apply.bench import Bench
from tests.inspect.verify.hostile import KILOBYTES, SECONDS, committed, mutated, slices

BLOCKS, SLICES, CHAINS = 10_000, 1_000, 400
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(tmp_path_factory.mktemp("hostile"))
    made.root("root")
    made.derive("derived", "root")
    made.add("root", [1, 2, 3], "2020-01-01T00:00:00Z")
    made.step("derived")
    return made


def quick(seed: object, work: Callable[[], object]) -> None:
    """`work` takes no more than it may.

    What is slow is done again: bytes that take long do so each time, but a collection of garbage
    in a process that ran thousands of tests does not come twice.
    """
    for _ in range(3):
        started = time.process_time()
        work()
        took = time.process_time() - started
        if took < SECONDS:
            return
    pytest.fail(f"seed {seed} took {took} s")


@pytest.fixture(autouse=True)
def frugal() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < KILOBYTES


def _blocks(bench: Bench) -> list[bytes]:
    folders = [bench.workspace.dataset(name).path / "blocks" for name in ("root", "derived")]
    return [file.read_bytes() for each in folders for file in sorted(each.iterdir())]


def test_mutated_blocks_are_decoded_or_refused_with_a_code(bench: Bench) -> None:
    whole = _blocks(bench)
    codes = set()

    def decoded(data: bytes) -> None:
        try:
            decode_bytes(data, "block")
        except OdfbuildError as error:
            codes.update(each.code for each in error.apart())

    for seed in range(BLOCKS):
        quick(seed, partial(decoded, mutated(whole[seed % len(whole)], seed)))
    assert codes >= {"E0131", "E0132"}
    assert "E0999" not in codes


def test_a_mutated_block_at_the_head_of_a_chain_is_told_by_every_verb(bench: Bench) -> None:
    """Its name is its hash, as somebody would write it who means harm."""
    whole = _blocks(bench)
    names = ("root", "derived")
    heads = {name: bench.now(name).head for name in names}
    seed = done = 0
    while done < CHAINS:
        seed += 1
        data = mutated(whole[seed % len(whole)], seed)
        try:
            decode_block(data)
        except MalformedBlock:
            if seed % 50:
                continue  # a few of these are enough
        done += 1
        name = names[seed % 2]
        store = bench.workspace.dataset(name)
        block = store.put_block(data)
        (store.path / "refs/head").write_text(str(block))
        quick(seed, partial(_every_verb, bench.workspace, name))
        store.block_path(block).unlink()
        (store.path / "refs/head").write_text(str(heads[name]))


def _every_verb(shared: Workspace, name: str) -> None:
    """What `log`, `import`, `ls` and `verify` do."""
    workspace = Workspace(shared.state, shared.keys, shared.cache)
    try:
        head = workspace.dataset(name).head()
        blocks = tuple(workspace.dataset(name).walk(head)) if head else ()
        json.dumps(log_to_data(blocks), default=str)
        render_log(blocks)
    except OdfbuildError as error:
        assert error.code != "E0999"
    try:
        state = workspace.projections([name])[name]
        dump_yaml(to_manifest(committed_snapshot(name, state, {})))
    except OdfbuildError as error:
        assert error.code != "E0999"
    other = {"root": "derived", "derived": "root"}[name]
    assert other in workspace.readable() or workspace.projections_at(workspace.heads()).faults()
    findings = verify_integrity(workspace, logical=True)
    assert all(each.code != "E0999" for each in findings)
    assert {each.dataset for each in findings} <= {name, other}


@pytest.mark.parametrize("part", range(2))
def test_mutated_slices_are_findings_and_crash_nothing(part: int, tmp_path: Path) -> None:
    """In a process of their own: a library that crashes must not take the tests with it."""
    first, last = part * SLICES // 2, (part + 1) * SLICES // 2
    command = [
        sys.executable,
        "-m",
        "tests.inspect.verify.hostile",
        str(tmp_path),
        str(first),
        str(last),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (len(told), done.stderr)
    assert len(told) == last - first
    assert max(each["seconds"] for each in told) < SECONDS
    assert max(each["kilobytes"] for each in told) < KILOBYTES
    assert {each["code"] for each in told} >= {"E0815", "E0831"}


def _table(**columns: object) -> pa.Table:
    return pa.table(columns)


def _bytes(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def _checked(data: bytes, folder: Path, records: int) -> str | None:
    path = folder / "slice"
    path.write_bytes(data)
    fault = check_slice(path, committed(data, records), "offset", logical=True)
    return fault.code if fault else None


def test_a_page_that_unpacks_to_far_more_than_its_bytes_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(offset=[0], text=["0" * (4 << 20)])
    data = _bytes(table, compression="zstd", use_dictionary=False, write_statistics=False)
    assert len(data) < 10_000
    assert _checked(data, tmp_path, 1) == "E0816"  # unpacked, and no more than other records
    monkeypatch.setattr(bounds, "_PAGE", 1 << 20)
    assert _checked(data, tmp_path, 1) == "E0831"


def test_a_large_value_that_is_repeated_takes_no_more_memory_than_a_few_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 4_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows), ["x" * (1 << 16)])
    data = _bytes(_table(offset=range(rows), text=text), store_schema=False)
    assert len(data) < 100_000
    monkeypatch.setattr(intact, "_WRITTEN_OUT", 4 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert _checked(data, tmp_path, rows) == "E0816"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_slice_with_other_counts_than_its_block_says_is_not_read(tmp_path: Path) -> None:
    data = _bytes(_table(offset=range(1_000)))
    assert _checked(data, tmp_path, 10) == "E0814"
    assert _checked(_bytes(_table(offset=["a", "b"])), tmp_path, 2) == "E0814"


def test_a_crafted_slice_is_a_finding_with_dataset_and_block_and_the_rest_is_verified(
    bench: Bench,
) -> None:
    """The block says what the bytes are, so that only their content is wrong."""
    for name in ("first", "second", "third"):
        bench.root(name)
        bench.add(name, [1, 2, 3])
    store = bench.workspace.dataset("second")
    whole = next(iter((store.path / "data").iterdir())).read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    kinds = {
        "thrift": whole[: -8 - footer] + b"\xff" * footer + whole[-8:],
        "page": whole[:4] + b"\xff" * 40 + whole[44:],
        "no parquet": b"PAR1" * 10,
        "empty": b"",
    }
    for seed in range(20):
        kinds[f"mutated {seed}"] = mutated(slices()[0], seed)
    for data in kinds.values():
        block = _recommitted(bench, "second", data)
        found = verify(bench.workspace, ["first", "second", "third"]).findings
        assert [(each.dataset, each.block) for each in found] == [("second", block)]
        assert found[0].code in ("E0814", "E0815", "E0831")
        assert found[0].path is not None


def _recommitted(bench: Bench, name: str, data: bytes) -> Multihash:
    """The newest block of a dataset, written anew for other bytes of its slice; its hash."""
    from dataclasses import replace

    from odfbuild.odf.flatbuffers.form import encode_block
    from odfbuild.odf.model import AddData

    store = bench.workspace.dataset(name)
    head = store.head()
    assert head is not None
    block = store.read_block(head)
    assert isinstance(block.event, AddData)
    assert block.event.new_data is not None
    hash = Multihash.sha3_256(data)
    (store.path / "data" / str(hash)).write_bytes(data)
    said = replace(block.event.new_data, physical_hash=hash, size=len(data))
    changed = replace(block, event=replace(block.event, new_data=said))
    made = store.put_block(encode_block(changed))
    (store.path / "refs/head").write_text(str(made))
    return made
