"""Chains written in Manifest version 2 go on: their blocks stay as they are, new ones join them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.odf.flatbuffers.form import block_hash, encode_block, manifest_version
from odfbuild.odf.model import ExecuteTransform, MetadataBlock
from odfbuild.odf.multihash import Multihash
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny


def _as_version_2(tiny: Tiny) -> None:
    """Write every block of the project as a peer of that time would have: other bytes and hashes.

    Blocks name those before them and those of inputs by hash, so inputs come first.
    """
    renamed: dict[Multihash, Multihash] = {}
    for name in ("root", "derived"):
        chain = tiny.workspace().dataset(name)
        head = chain.head()
        assert head is not None
        blocks = [block for _, block in chain.walk(head)][::-1]
        shutil.rmtree(chain.path / "blocks")
        (chain.path / "blocks").mkdir()
        for block in blocks:
            before = block_hash(encode_block(block))
            data = encode_block(_renamed(block, renamed), 2)
            renamed[before] = chain.put_block(data)
        (chain.path / "refs" / "head").write_text(str(renamed[head]))
    shutil.rmtree(tiny.root / ".odfbuild")


def _renamed(block: MetadataBlock, renamed: dict[Multihash, Multihash]) -> MetadataBlock:
    event = block.event
    if isinstance(event, ExecuteTransform):
        inputs = tuple(
            replace(
                each,
                prev_block_hash=each.prev_block_hash and renamed[each.prev_block_hash],
                new_block_hash=each.new_block_hash and renamed[each.new_block_hash],
            )
            for each in event.query_inputs
        )
        event = replace(event, query_inputs=inputs)
    before = block.prev_block_hash
    return replace(block, event=event, prev_block_hash=before and renamed[before])


def _blocks(tiny: Tiny) -> dict[str, bytes]:
    return {
        f"{file.parent.parent.name}/{file.name}": file.read_bytes()
        for file in sorted((tiny.root / "chains").glob("*/blocks/*"))
    }


@pytest.fixture
def old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Tiny:
    """A project that was built once, its chains in Manifest version 2."""
    share(PlainEngine(), monkeypatch)
    tiny = Tiny.fresh(tmp_path)
    Program(tiny.root, monkeypatch, capsys).apply()
    _as_version_2(tiny)
    return tiny


def test_chains_in_manifest_2_are_read_and_extended_without_touching_a_byte(
    old: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program(old.root, monkeypatch, capsys)
    before = _blocks(old)
    assert {manifest_version(data) for data in before.values()} == {2}
    assert program.ok("plan").out.startswith("No changes.")
    assert "all blocks and objects are intact" in program.ok("verify").out

    old.derive("derived", QUERY.replace("10", "20"))
    old.arrive(2)
    planned = program.ok("plan").out
    assert "~ derived  forward-only: SetTransform" in planned
    assert "3 existing records are not recomputed: made by the query of block #" in planned
    program.apply()

    after = _blocks(old)
    assert {name: data for name, data in after.items() if name in before} == before
    new = {name: manifest_version(data) for name, data in after.items() if name not in before}
    assert sorted(name.split("/")[0] for name in new) == ["derived", "derived", "root"]
    assert set(new.values()) == {3}
    assert old.ids("derived") == [1, 2, 3, 4]
    assert program.ok("plan").out.startswith("No changes.")
    assert "all blocks and objects are intact" in program.ok("verify").out

    for name in ("root", "derived"):
        logged = program.ok("log", name).out
        assert all(f"Block #{n}: " in logged for n in range(len(list(old.events(name)))))
    oldest = min(name for name in before if name.startswith("root/"))
    shown = program.ok("decode", str(old.root / "chains" / "root" / "blocks" / oldest[5:])).out
    assert "# Manifest version 2, " in shown
