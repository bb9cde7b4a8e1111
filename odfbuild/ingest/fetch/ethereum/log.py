"""Log entries from a node, and their table.

Source: Ethereum JSON-RPC, `eth_getLogs`; reference behaviour, columns of `EthereumLogs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from odfbuild.values import Value

TOPICS = ("topic0", "topic1", "topic2", "topic3")

COLUMNS = pa.schema(
    [
        pa.field("block_number", pa.uint64(), nullable=False),
        pa.field("block_hash", pa.binary(), nullable=False),
        pa.field("block_timestamp", pa.timestamp("ms", "UTC")),
        pa.field("transaction_index", pa.uint64(), nullable=False),
        pa.field("transaction_hash", pa.binary(), nullable=False),
        pa.field("log_index", pa.uint64(), nullable=False),
        pa.field("address", pa.binary(), nullable=False),
        *(pa.field(name, pa.binary()) for name in TOPICS),
        pa.field("data", pa.binary(), nullable=False),
    ]
)
"""What each entry has, in this order; `event` comes after it where a signature is given."""


class Log(Value, kw_only=True):
    """One entry. `block_timestamp` is in seconds since 1970; many nodes do not tell it."""

    block_number: int
    block_hash: bytes
    block_timestamp: int | None
    transaction_index: int
    transaction_hash: bytes
    log_index: int
    address: bytes
    topic0: bytes | None
    topic1: bytes | None
    topic2: bytes | None
    topic3: bytes | None
    data: bytes

    @property
    def topics(self) -> tuple[bytes, ...]:
        """The topics that there are."""
        all_of_them = (self.topic0, self.topic1, self.topic2, self.topic3)
        return tuple(topic for topic in all_of_them if topic is not None)

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"entry {self.log_index} of block {self.block_number}"


def parse_log(entry: Mapping[str, Any]) -> Log:
    """An entry of an answer to `eth_getLogs`; raises `ValueError`, `KeyError` or `TypeError`."""
    topics = [unhex(topic) for topic in entry["topics"]]
    stamp = entry.get("blockTimestamp")
    return Log(
        block_number=int(entry["blockNumber"], 16),
        block_hash=unhex(entry["blockHash"]),
        block_timestamp=None if stamp is None else int(stamp, 16),
        transaction_index=int(entry["transactionIndex"], 16),
        transaction_hash=unhex(entry["transactionHash"]),
        log_index=int(entry["logIndex"], 16),
        address=unhex(entry["address"]),
        data=unhex(entry["data"]),
        **dict(zip(TOPICS, topics + [None] * (len(TOPICS) - len(topics)), strict=True)),
    )


def unhex(text: str) -> bytes:
    """Bytes written as `0x…`."""
    if not text.startswith("0x"):
        raise ValueError(f"not hexadecimal: {text!r}")
    return bytes.fromhex(text[2:])


def table_of(logs: Sequence[Log], event: pa.Array | None) -> pa.Table:
    """All columns of `logs`, with the decoded `event` as the last one."""
    arrays = []
    for field in COLUMNS:
        values = [getattr(log, field.name) for log in logs]
        if pa.types.is_timestamp(field.type):
            values = [None if seconds is None else seconds * 1000 for seconds in values]
        arrays.append(pa.array(values, field.type))
    table = pa.Table.from_arrays(arrays, schema=COLUMNS)
    if event is None:
        return table
    return table.append_column(pa.field("event", event.type, nullable=False), event)
