"""Entries of the logs of an Ethereum-like chain, as a Parquet file.

The state is `NUMBER@HASH` of the block up to which the chain was read, so that a chain that was
reorganised below it is noticed. Each batch ends with a block, and is committed before the next one
is asked for. Source: specification, `FetchStep::EthereumLogs`; reference behaviour, fetch steps.
Needs the extra `ethereum`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pyarrow.parquet as pq

from odfbuild.errors import InDefinition, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.ethereum.event import Event, parse_event
from odfbuild.ingest.fetch.ethereum.filter import LogFilter, all_of, of_event, parse_filter
from odfbuild.ingest.fetch.ethereum.log import Log, table_of
from odfbuild.ingest.fetch.ethereum.node import Node, Refusal
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.ingest.secrets import remember_password, resolve_address
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStepEthereumLogs, SourceState
from odfbuild.values import Value

_STATE = re.compile(r"(\d+)@(?:0x)?([0-9a-fA-F]{64})")


class _Batch(Value):
    """Entries of the blocks `first` to `last`."""

    first: int
    last: int
    logs: list[Log]


def fetch_logs(
    step: FetchStepEthereumLogs, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the entries of new blocks, batch by batch. Raises `IngestError`."""
    event = parse_event(step.signature) if step.signature else None
    wanted = all_of(
        [
            *([parse_filter(step.filter)] if step.filter else []),
            *([of_event(event.selector)] if event else []),
        ]
    )
    settings = context.settings
    with _node(step, settings) as node:
        name = f"the logs of chain {_check_chain(step, node)}"
        first = max(wanted.reach.first, _resume_after(state, node, name) + 1)
        last = min(wanted.reach.last, node.newest_block() - settings.ethereum_confirmations)
        if wanted.reach.is_empty:
            return
        for batch in _batches(node, wanted, first, last, settings):
            yield _fetched(batch, event, node, name, context)


def _fetched(
    batch: _Batch, event: Event | None, node: Node, name: str, context: FetchContext
) -> Fetched:
    digest = node.block_hash(batch.last)
    if digest is None or any(
        log.block_hash != digest for log in batch.logs if log.block_number == batch.last
    ):
        raise node.failed(f"block {batch.last} was replaced while it was read")
    file = None
    if batch.logs:
        file = context.scratch / "logs.parquet"
        pq.write_table(table_of(batch.logs, event.decode(batch.logs) if event else None), file)
    state = etag(f"{batch.last}@0x{digest.hex()}")
    return Fetched(file, state, None, f"{name}, blocks {batch.first} to {batch.last}")


def _batches(
    node: Node, wanted: LogFilter, first: int, last: int, settings: IngestSettings
) -> Iterator[_Batch]:
    """Batches that are large enough to be worth a commit; the last one may be smaller.

    A last one without entries is worth it only if reading it again takes more than one request.
    """
    begin, logs = first, list[Log]()
    for end, found in _windows(node, wanted, first, last, settings.ethereum_block_stride):
        logs += found
        blocks = end - begin + 1
        if len(logs) >= settings.target_records or blocks >= settings.ethereum_blocks_per_commit:
            yield _Batch(begin, end, logs)
            begin, logs = end + 1, []
    if logs or last - begin + 1 > settings.ethereum_block_stride:
        yield _Batch(begin, last, logs)


def _windows(
    node: Node, wanted: LogFilter, first: int, last: int, stride: int
) -> Iterator[tuple[int, list[Log]]]:
    """The last block of each request, and the entries that it brought."""
    while first <= last:
        end = min(first + stride - 1, last)
        try:
            found = node.logs(replace(wanted.reach, first=first, last=end))
        except Refusal as error:
            # Nodes bound what a request may span or bring, each in its own way and words.
            if end == first:
                raise node.failed(f"it refuses the logs of block {first}: {error}") from None
            stride = (end - first + 1) // 2
            continue
        yield end, [log for log in found if wanted.accepts(log)]
        first = end + 1


def _node(step: FetchStepEthereumLogs, settings: IngestSettings) -> Node:
    shown = step.node_url or settings.ethereum_nodes.get(str(step.chain_id))
    if shown is None:
        raise IngestError(
            f"there is no node for chain {step.chain_id}",
            code="E0418",
            help=f"add its address to `ingest.ethereum.nodes` in odfbuild.yaml under "
            f"'{step.chain_id}', or give `fetch.nodeUrl`",
        )
    url = resolve_address(shown)
    remember_password(url)
    if not url.startswith(("http://", "https://")):
        raise IngestError(
            f"the node {shown} cannot be asked",
            code="E0418",
            help="give its http: or https: address; nodes that have a wss: address have one too",
        )
    return Node(url, shown, settings)


def _check_chain(step: FetchStepEthereumLogs, node: Node) -> int:
    found = node.chain_id()
    if step.chain_id is not None and step.chain_id != found:
        raise node.failed(f"it is a node of chain {found}, not of chain {step.chain_id}")
    return found


def _resume_after(state: SourceState | None, node: Node, name: str) -> int:
    """The block up to which the chain was read; -1: nothing was."""
    if state is None or state.kind != ETAG:
        return -1
    match = _STATE.fullmatch(state.value)
    if match is None:
        raise IngestError(
            f"the chain says that {name} were read up to '{state.value[:100]}', which is no block",
            code="E0419",
            help="a source of another kind was read before; use a new dataset for this one",
        )
    number, known = int(match.group(1)), bytes.fromhex(match.group(2))
    found = node.block_hash(number)
    if found != known:
        raise IngestError(
            f"{name} were read up to block {number}, which is not the one that the node has",
            code="E0419",
            location=InDefinition.of("fetch"),
            notes=(
                f"block 0x{known.hex()} was read",
                "the node does not have that block yet"
                if found is None
                else f"the node has 0x{found.hex()}: the chain was reorganised, or is another one",
            ),
            help="committed records cannot be removed: create a new dataset, with "
            "`ingest.ethereum.confirmations` in odfbuild.yaml at the depth of reorganisations; "
            "for a node that is behind, wait",
        )
    return number
