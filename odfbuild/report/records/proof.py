"""A proof that holds, for people and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.proof import VerifiedProof


def render_proof(found: VerifiedProof, name: str) -> str:
    """Who signed, what was read at which block, how many rows."""
    lines = [
        f"{name} holds: {count(found.rows, 'row')}, the same when asked again.",
        f"  signed by  {found.signer}",
    ]
    wide = max((len(each.alias) for each in found.datasets), default=0)
    heads = ["read from", *[""] * len(found.datasets)]
    lines += [
        f"  {head:9}  {each.alias:{wide}}  {each.block}"
        for head, each in zip(heads, found.datasets, strict=False)
    ]
    return "\n".join(lines)


def proof_to_data(found: VerifiedProof) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "holds": True,
        "signer": found.signer,
        "query": found.query,
        "datasets": [each.data for each in found.datasets],
        "rows": found.rows,
    }
