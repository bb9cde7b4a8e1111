"""An Ethereum-like chain that runs offline: py-evm behind a small JSON-RPC front."""

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Logs three topics, the first three words that it is called with, and the rest as data.
_PROGRAM = bytes.fromhex("60603603806060600037604035602035600035836000a300")
_INSTALL = bytes([0x60, len(_PROGRAM), 0x80, 0x60, 0x0B, 0x60, 0, 0x39, 0x60, 0, 0xF3])
CHAIN = 1337


@dataclass
class Chain:
    """`requests` are the methods that were called, `most_blocks` bounds what one may span."""

    tester: Any
    port: int = 0
    requests: list[tuple[str, Any]] = field(default_factory=list)
    most_blocks: int | None = None
    failing: list[int] = field(default_factory=list)
    timestamps: bool = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, method: str) -> list[Any]:
        return [params for name, params in self.requests if name == method]

    def deploy(self) -> str:
        """A new contract; returns its address."""
        hash_ = self._send({"to": "", "data": "0x" + (_INSTALL + _PROGRAM).hex()})
        return str(self.tester.get_transaction_receipt(hash_)["contract_address"])

    def emit(self, contract: str, topics: list[bytes], data: bytes = b"") -> None:
        """One log entry in a block of its own."""
        assert len(topics) == 3
        self._send({"to": contract, "data": "0x" + (b"".join(topics) + data).hex()})

    def mine(self, blocks: int) -> None:
        self.tester.mine_blocks(blocks)

    def _send(self, transaction: dict[str, Any]) -> str:
        sender = self.tester.get_accounts()[0]
        more = {"from": sender, "gas": 300_000, "gas_price": 10**10}
        return str(self.tester.send_transaction({**transaction, **more}))

    def answer(self, method: str, params: list[Any]) -> Any:
        self.requests.append((method, params))
        if method == "eth_chainId":
            return hex(CHAIN)
        if method == "eth_blockNumber":
            return hex(self.tester.get_block_by_number("latest")["number"])
        if method == "eth_getBlockByNumber":
            return self._block(int(params[0], 16))
        assert method == "eth_getLogs", method
        return self._logs(params[0])

    def _block(self, number: int) -> Any:
        from eth_tester.exceptions import BlockNotFound

        try:
            return {"hash": self.tester.get_block_by_number(number)["hash"]}
        except BlockNotFound:
            return None

    def _logs(self, asked: dict[str, Any]) -> Any:
        first, last = int(asked["fromBlock"], 16), int(asked["toBlock"], 16)
        if self.most_blocks is not None and last - first >= self.most_blocks:
            raise ValueError("query spans too many blocks")
        found = self.tester.get_logs(first, last, asked.get("address"), asked["topics"] or None)
        return [self._entry(each) for each in found]

    def _entry(self, log: Any) -> Any:
        block = log["block_number"]
        entry = {
            "blockNumber": hex(block),
            "blockHash": log["block_hash"],
            "transactionIndex": hex(log["transaction_index"]),
            "transactionHash": log["transaction_hash"],
            "logIndex": hex(log["log_index"]),
            "address": log["address"].lower(),
            "data": log["data"],
            "topics": list(log["topics"]),
            "removed": False,
        }
        if self.timestamps:
            entry["blockTimestamp"] = hex(self.tester.get_block_by_number(block)["timestamp"])
        return entry


@contextlib.contextmanager
def evm_node() -> Iterator[Chain]:
    """A fresh chain."""
    limit = sys.getrecursionlimit()
    from eth_tester import EthereumTester, PyEVMBackend

    # The EVM raises the limit twelvefold for all of the process, and with it what `json` may nest
    # until the stack of C ends: other tests would crash.
    sys.setrecursionlimit(limit)

    chain = Chain(EthereumTester(PyEVMBackend()))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = chain.failing.pop(0) if chain.failing else 200
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
            try:
                answer["result"] = chain.answer(asked["method"], asked["params"])
            except ValueError as error:
                answer["error"] = {"code": -32005, "message": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chain.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield chain
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
