"""What a chain amounts to at a block, as a signed document: a chain can be planned without it.

It holds the projection and the state of the rules at that block. The dataset's own key signs it,
whose public half is its DID, so that nobody else can make one; whoever has the blocks can compute
it again. It lies beside the head as `info/summaries/<reference>`. Pure.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import msgspec

from odfbuild.odf.chain import state as rules
from odfbuild.odf.chain.projection import Projection, QueryEra, fold, layout
from odfbuild.odf.chain.state import ChainState, LastData
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import Proof, sign
from odfbuild.values import Value

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_KIND = "ChainSummary"
_VERSION = 1


_LAYOUT = layout(Projection, QueryEra, ChainState, LastData)


class ChainSummary(Value):
    """The projection of a chain and the state of its rules, at the same block."""

    projection: Projection
    state: ChainState

    @classmethod
    def of(cls, before: Self | None, links: Iterable[tuple[Multihash, MetadataBlock]]) -> Self:
        """The summary after `links`, oldest first; from the seed on where `before` is `None`.

        `ValueError` when that is no chain.
        """
        links = tuple(links)
        state = before.state if before is not None else None
        for head, block in links:
            state = rules.advance(state, head, block)
        projection = fold(before.projection if before is not None else None, links)
        if state is None:
            raise ValueError("a chain has at least one block")
        return cls(projection, state)

    @property
    def head(self) -> Multihash:
        """The newest block that it knows of."""
        return self.projection.head

    @property
    def data(self) -> dict[str, Any]:
        """What is signed."""
        now = self.projection
        return {
            "kind": _KIND,
            "version": _VERSION,
            "layout": _LAYOUT,
            "datasetId": str(now.dataset_id),
            "head": str(now.head),
            "blocks": now.blocks,
            "records": now.records,
            "systemTime": str(now.system_time),
            "projection": msgspec.to_builtins(now),
            "state": msgspec.to_builtins(self.state),
        }


class OtherRelease(ValueError):
    """A release of odfbuild with other summaries wrote this one."""


class SignedSummary(Value):
    """A summary, and the proof that the dataset's key signed it; `None`: nobody did.

    `recent` are the bytes of some of the newest blocks, which their hashes vouch for.
    """

    summary: ChainSummary
    proof: Proof | None
    recent: tuple[bytes, ...] = ()

    @classmethod
    def sign(
        cls, summary: ChainSummary, key: Ed25519PrivateKey | None, recent: tuple[bytes, ...] = ()
    ) -> Self:
        """Sign a summary with the key of its dataset, if that is there."""
        return cls(summary, None if key is None else sign(summary, key), recent)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the form of `encode`, byte by byte the same.

        `OtherRelease` for that of another release, `ValueError` for anything else. The signature is
        not checked; see `holds`.
        """
        try:
            document = json.loads(data)
            said, proof = document["summary"], document["proof"]
            if said["kind"] != _KIND:
                raise ValueError(f"it is not a {_KIND}")
            if (said["version"], said["layout"]) != (_VERSION, _LAYOUT):
                raise OtherRelease("another release of odfbuild wrote it")
            found = cls(
                ChainSummary(
                    msgspec.convert(said["projection"], Projection),
                    msgspec.convert(said["state"], ChainState),
                ),
                None if proof is None else Proof.parse(proof),
                tuple(map(base64.b64decode, document["recent"])),
            )
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError("it has not the fields of one") from None
        # One summary has one spelling: what it says beside the projection follows from that.
        if found.encode() != data:
            raise ValueError("it is not in canonical form")
        return found

    def encode(self) -> bytes:
        """The bytes of the file."""
        proof = None if self.proof is None else self.proof.data
        recent = [base64.b64encode(each).decode("ascii") for each in self.recent]
        document = {"summary": self.summary.data, "proof": proof, "recent": recent}
        return json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"

    @property
    def holds(self) -> bool:
        """Whether the dataset's own key signed it; `ModuleNotFoundError` without cryptography."""
        signer = self.summary.projection.dataset_id.did_key
        return (
            self.proof is not None
            and self.proof.signer == signer
            and self.proof.holds_for(self.summary)
        )
