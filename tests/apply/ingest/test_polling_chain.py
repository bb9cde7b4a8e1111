"""Logs of a blockchain, from a real EVM through Spark into a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from odfbuild.ingest.fetch.ethereum import node as node_module
from odfbuild.ingest.fetch.ethereum.event import parse_event
from odfbuild.odf.model import AddData
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.servers.chain import CHAIN, evm_node

pytestmark = pytest.mark.spark

SIGNATURE = "Minted(address indexed to, uint64 indexed number, uint256 amount)"
QUERY = """
SELECT block_timestamp AS event_time, CAST(block_number AS BIGINT) AS block_number,
  event.number AS number, lower(hex(event.to)) AS holder,
  CAST(event.amount AS DECIMAL(38, 0)) AS amount
FROM input
"""


def define(root: Path, name: str, fetch: dict[str, Any], **more: Any) -> None:
    polling = {
        "kind": "SetPollingSource",
        "fetch": {"kind": "EthereumLogs", "chainId": CHAIN, **fetch},
        "read": {"kind": "Parquet"},
        "merge": {"kind": "Append"},
        **more,
    }
    content = {"name": name, "kind": "Root", "metadata": [polling]}
    text = json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content})
    (root / "datasets" / f"{name}.yaml").write_text(text)


def test_events_become_records_once_and_in_order(tmp_path, monkeypatch, capsys, spark_engine):
    share(spark_engine, monkeypatch)
    monkeypatch.setattr(node_module, "_FIRST_WAIT", 0.01)
    root = tmp_path / "p"
    (root / "datasets").mkdir(parents=True)
    event = parse_event(SIGNATURE)
    holder = bytes(range(20))
    with evm_node() as node:
        project = {"name": "chain", "ingest": {"ethereum": {"nodes": {str(CHAIN): node.url}}}}
        document = {"kind": "Project", "version": 1, "content": project}
        (root / "odfbuild.yaml").write_text(json.dumps(document))
        contract = node.deploy()

        def mint(number: int) -> None:
            topics = [event.selector, bytes(12) + holder, number.to_bytes(32, "big")]
            node.emit(contract, topics, encode(["uint256"], [10**30 + number]))

        address = f"address = X'{contract[2:]}'"
        sql = {"kind": "Sql", "engine": "spark", "query": QUERY}
        define(root, "minted", {"signature": SIGNATURE, "filter": address}, preprocess=sql)
        define(root, "raw", {"filter": f"{address} and block_number > 2"})
        tiny, program = Tiny(root), Program(root, monkeypatch, capsys)
        mint(1)
        mint(2)
        asked = len(node.requests)
        assert "polled for new blocks at apply" in program.ok("plan", "--json").out
        assert len(node.requests) == asked
        program.apply()
        records = tiny.records("minted")
        assert [record["number"] for record in records] == [1, 2]
        assert records[0]["holder"] == holder.hex()
        assert [int(record["amount"]) - 10**30 for record in records] == [1, 2]
        assert [record["block_number"] for record in records] == [2, 3]
        (raw,) = tiny.records("raw")
        assert raw["topic0"] == event.selector
        assert raw["block_number"] == 3

        before = tiny.state()
        program.apply()
        assert tiny.state() == before

        mint(3)
        program.apply()
        assert [record["number"] for record in tiny.records("minted")] == [1, 2, 3]
        added = tiny.events("minted")[-1]
        assert isinstance(added, AddData)
        assert added.new_source_state.value.startswith("4@0x")

        after = tiny.state()
        node.failing = [500] * 20
        failed = program("apply", "-y")
        assert failed.code == 1
        assert "500 Internal Server Error" in failed.out + failed.err
        assert tiny.state() == after
