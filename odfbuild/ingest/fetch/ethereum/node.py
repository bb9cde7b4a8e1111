"""Client of a node of an Ethereum-like chain, over JSON-RPC.

Source: JSON-RPC 2.0; Ethereum JSON-RPC (`eth_chainId`, `eth_blockNumber`, `eth_getBlockByNumber`,
`eth_getLogs`).
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Self

import httpx

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.ethereum.filter import FileAccess, Values
from odfbuild.ingest.fetch.ethereum.log import Log, parse_log, unhex
from odfbuild.ingest.secrets import library_words, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.version import __version__

_FIRST_WAIT = 0.5
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_HELP = "check `fetch.nodeUrl` and the node, then run `odfbuild apply` again"


class Refusal(Exception):
    """The node answered with an error object."""


class Node:
    """Requests to one node; every failure becomes an `IngestError`. `shown` is its address."""

    def __init__(self, url: str, shown: str, settings: IngestSettings) -> None:
        self._url = url
        self._shown = shown
        self._attempts = settings.attempts
        self._ids = itertools.count(1)
        timeout = httpx.Timeout(settings.idle_seconds, connect=settings.connect_seconds)
        headers = {"User-Agent": f"odfbuild/{__version__}"}
        self._client = httpx.Client(timeout=timeout, headers=headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def chain_id(self) -> int:
        """Which chain it is."""
        return int(self._answer("eth_chainId"), 16)

    def newest_block(self) -> int:
        """The highest block number."""
        return int(self._answer("eth_blockNumber"), 16)

    def block_hash(self, number: int) -> bytes | None:
        """The hash of a block; `None` when the node has no such block."""
        block = self._answer("eth_getBlockByNumber", hex(number), False)
        return None if block is None else unhex(block["hash"])

    def logs(self, reach: FileAccess) -> list[Log]:
        """Entries within `reach`, in order. Raises `Refusal` when the node finds that too much."""
        topics = [_listed(values) for values in reach.topics]
        while topics and topics[-1] is None:
            topics.pop()  # a wildcard asks for an entry that has such a topic
        asked: dict[str, Any] = {"fromBlock": hex(reach.first), "toBlock": hex(reach.last)}
        asked["topics"] = topics
        if reach.address is not None:
            asked["address"] = _listed(reach.address)
        try:
            entries = self._call("eth_getLogs", asked)
            found = [parse_log(entry) for entry in entries if not entry.get("removed")]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise self._odd("eth_getLogs", error) from None
        return sorted(found, key=lambda log: (log.block_number, log.log_index))

    def _answer(self, method: str, *params: Any) -> Any:
        try:
            return self._call(method, *params)
        except Refusal as error:
            raise self.failed(f"it answered {method} with an error: {error}") from None
        except (KeyError, ValueError, TypeError) as error:
            raise self._odd(method, error) from None

    def _call(self, method: str, *params: Any) -> Any:
        wait = _FIRST_WAIT
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(method, params)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            except _Busy as error:
                reason = str(error)
            except (httpx.InvalidURL, httpx.HTTPStatusError, UnicodeError) as error:
                raise self.failed(library_words(error, self._shown)) from None
            if attempt < self._attempts:
                time.sleep(wait)
                wait *= 2
        raise self.failed(f"{reason}, {self._attempts} times")

    def _once(self, method: str, params: tuple[Any, ...]) -> Any:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}
        response = self._client.post(self._url, json=body)
        if response.status_code in _TRY_AGAIN:
            raise _Busy(f"it answered {response.status_code} {response.reason_phrase}")
        try:
            answer = response.json()
        except ValueError:
            raise self.failed(
                f"it answered {response.status_code} {response.reason_phrase}, and not in JSON"
            ) from None
        if answer.get("error"):
            raise Refusal(f"{answer['error']['message']} (code {answer['error']['code']})")
        return answer["result"]

    def _odd(self, method: str, error: Exception) -> IngestError:
        return self.failed(f"its answer to {method} is not understood ({error})")

    def failed(self, reason: str) -> IngestError:
        """The error for a node that cannot be used."""
        return IngestError(
            scrub(f"cannot read logs of the node {self._shown}: {reason}"), code="E0418", help=_HELP
        )


class _Busy(Exception):
    pass


def _listed(values: Values) -> list[str] | None:
    return None if values is None else sorted(f"0x{value.hex()}" for value in values)
