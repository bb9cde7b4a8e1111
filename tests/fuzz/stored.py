"""Bytes of chains that nobody should have written: blocks, slices, checkpoints, heads.

Every case is known by its seed. A case ends well, or with errors that have a code: nothing else is
raised, E0999 is none of them, and time and memory stay within bounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.process.server.checkpoint import read_checkpoint
from odfbuild.engine.step_limits import is_of_coordinator, limit_of_step
from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.dataset_config import read_config
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.flatbuffers.form import MalformedBlock, decode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import Checkpoint
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.yaml_form import to_manifest
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.plan.changes.committed import committed_snapshot
from odfbuild.project.decode import decode_bytes, decode_file
from odfbuild.records.intact import check_checkpoint, check_slice
from odfbuild.records.records import newest_records, records_of
from odfbuild.report.chain import log_to_data, render_log
from odfbuild.store.branches import BranchInfo
from odfbuild.store.signed_heads import seen_statement
from odfbuild.store.workspace import Workspace
from tests.apply.bench import Bench
from tests.inspect.verify.hostile import committed, mutated, slices
from tests.records.chains import SYSTEM, Chain, workspace

Case = Callable[[int], None]


def _told(error: OdfbuildError) -> None:
    assert all(each.code != "E0999" for each in error.apart()), error


def _attempt(*works: Callable[[], object]) -> None:
    for work in works:
        try:
            work()
        except OdfbuildError as error:
            _told(error)


def _bench(folder: Path) -> Bench:
    made = Bench(folder)
    made.root("root")
    made.derive("derived", "root")
    made.add("root", [1, 2, 3], "2020-01-01T00:00:00Z")
    made.step("derived")
    return made


# --- Blocks ---


def blocks(folder: Path) -> Case:
    """Blocks that are decoded, and such that are the head of a chain which every verb reads."""
    bench = _bench(folder)
    names = ("root", "derived")
    stores = {name: bench.workspace.dataset(name) for name in names}
    heads = {name: bench.now(name).head for name in names}
    whole = [
        file.read_bytes()
        for store in stores.values()
        for file in sorted((store.path / "blocks").iterdir())
    ]

    def case(seed: int) -> None:
        data = mutated(whole[seed % len(whole)], seed)
        _attempt(lambda: decode_bytes(data, "block"))
        try:
            decode_block(data)
        except MalformedBlock:
            if seed % 50:
                return
        name = names[seed // len(whole) % 2]
        store = stores[name]
        block = store.put_block(data)
        (store.path / "refs/head").write_text(str(block))
        try:
            _every_verb(bench.workspace, name)
        finally:
            if block not in heads.values():
                store.block_path(block).unlink()
            (store.path / "refs/head").write_text(str(heads[name]))

    return case


def _every_verb(shared: Workspace, name: str) -> None:
    """What `log`, `import`, `ls`, `tail` and `verify` do."""
    space = Workspace(shared.state, shared.keys, shared.cache)

    def log() -> None:
        head = space.dataset(name).head()
        found = tuple(space.dataset(name).walk(head)) if head else ()
        json.dumps(log_to_data(found), default=str)
        render_log(found)

    def definition() -> None:
        state = space.projections([name])[name]
        dump_yaml(to_manifest(committed_snapshot(name, state, {})))

    _attempt(
        log,
        definition,
        space.readable,
        lambda: newest_records(space, name, space.projection(name), 2),
    )
    assert all(each.code != "E0999" for each in verify_integrity(space, logical=True))


# --- Slices ---


def parquet(folder: Path) -> Case:
    """Slices that are verified, decoded, and shown by every reader without Spark."""
    whole = slices()
    table = pq.read_table(pa.BufferReader(whole[0]))
    chain = Chain(workspace(folder / "w"), "a", *list(table.schema)[len(SYSTEM) :])
    chain.add_table(table)
    [file] = (chain.store.path / "data").iterdir()
    alone = folder / "slice"

    def case(seed: int) -> None:
        data = mutated(whole[seed % len(whole)], seed)
        alone.write_bytes(data)
        fault = check_slice(alone, committed(data), "offset", logical=True)
        assert fault is None or fault.code != "E0999"
        file.write_bytes(data)
        state = chain.space.projection("a")
        records = records_of(chain.space, "a", view="history")
        _attempt(
            lambda: decode_file(alone),
            lambda: newest_records(chain.space, "a", state, 3),
            lambda: list(records.batches()),
            lambda: records.last(2, ["city", "tags"], pc.field("offset") >= 490),
            lambda: list(records.batches([], pc.field("city") == "city 3")),
        )

    return case


# --- Checkpoints ---


def checkpoints(folder: Path) -> Case:
    """Checkpoints of this program, and those that its engine for others is given."""
    bench = _bench(folder)
    store = bench.workspace.dataset("derived")
    checkpoint = Checkpoint(physical_hash=Multihash.sha3_256(b"checkpoint"), size=1_000)
    own = store.object_path("checkpoints", checkpoint.physical_hash)
    own.parent.mkdir()
    said = replace(bench.last("derived"), new_checkpoint=checkpoint)
    whole = [
        b'{"consumed": {"a": 5}, "version": 1}',
        b'{"limit": {"sample": 0.5, "since": "2024-01-01T00:00:00Z"}, "sampled": ["a"]}',
        b"[" * 5_000,
        *_archives(folder),
    ]

    def case(seed: int) -> None:
        data = mutated(whole[seed % len(whole)], seed)
        if seed % 7 == 0:
            data = data[: seed % 40] + b"[" * (seed % 100_000) + data
        own.write_bytes(data)
        expected = Checkpoint(physical_hash=Multihash.sha3_256(data), size=len(data))
        assert check_checkpoint(own, expected) is None
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        _attempt(
            lambda: limit_of_step(store, said),
            lambda: is_of_coordinator(own),
            lambda: read_checkpoint(own, scratch, [DatasetId(b"\1" * 32)]),
        )

    return case


def _archives(folder: Path) -> Iterator[bytes]:
    """Archives as the engine for others writes them, and as any program does."""
    import io
    import tarfile

    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=form) as archive:
            for name in ("state.json", "data/0.parquet", "x" * 90):
                content = b'{"version": 1, "inputs": [], "schema": null}'
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        yield made.getvalue()


# --- Heads ---


def heads(folder: Path) -> Case:
    """Files beside a chain: heads, branches, names, configuration, statements."""
    bench = _bench(folder)
    store = bench.workspace.dataset("root")
    head = str(store.head())
    config = (
        "kind: DatasetConfig\nversion: 1\ncontent:\n  pullAliases:\n    - https://a.example/b\n"
        "  pushAliases: []\n"
    )
    whole = {
        "refs/head": head.encode(),
        "refs/branch": head.encode(),
        "info/alias": b"root",
        "info/config": config.encode(),
        "info/branches/branch": b'{"base": "' + head.encode() + b'", "created": '
        b'"2024-01-01T00:00:00Z", "limit": null, "git": null}',
        "info/signed-head": b'{"statement": {"head": "' + head.encode() + b'"}, "signature": "x"}',
    }
    for name, data in whole.items():
        (store.path / name).parent.mkdir(parents=True, exist_ok=True)
        (store.path / name).write_bytes(data)
    names = list(whole)

    def case(seed: int) -> None:
        name = names[seed % len(names)]
        data = mutated(whole[name], seed)
        if seed % 11 == 0:
            data = data[: seed % 40] + b"[" * (seed % 50_000)
        (store.path / name).write_bytes(data)
        space = Workspace(store.path.parent, folder / "keys", folder / "cache")
        own = space.dataset("root")
        try:
            _attempt(
                space.heads,
                own.head,
                own.references,
                lambda: own.branch_head("branch"),
                lambda: BranchInfo.read(own.folder, "root", "branch"),
                lambda: read_config(own.folder),
                lambda: seen_statement(own),
                lambda: space.projections(["root"]),
                space.readable,
            )
            findings = verify_integrity(space, ["root"]) if seed % 5 == 0 else ()
            assert all(each.code != "E0999" for each in findings)
        finally:
            (store.path / name).write_bytes(whole[name])

    return case


TARGETS: dict[str, Callable[[Path], Case]] = {
    "blocks": blocks,
    "slices": parquet,
    "checkpoints": checkpoints,
    "heads": heads,
}
