"""Tell who vouches for chains: what the newest statement beside each says of its blocks.

The key of the dataset signed it, or it is forged. A chain that has another block at its place is
not the one that the owner signed, even if all hashes were made to match.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from odfbuild.errors import IntegrityError, OdfbuildError, PersonalDataError
from odfbuild.inspect.verify.finding import Finding, fault
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.signed_head import FILE, Statement
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.signed_heads import check_signature, seen_statement
from odfbuild.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Signature:
    """What vouches for a dataset: a `statement` of its key, or nothing.

    `owner` is the reference of a dataset that belongs to others. `since` counts the blocks behind
    the signed one; it is negative when that one is not here yet.
    """

    dataset: str
    owner: str | None
    statement: Statement | None
    since: int

    @property
    def is_complete(self) -> bool:
        """Whether the head is signed."""
        return self.statement is not None and self.since == 0


def signatures(
    workspace: Workspace, names: Iterable[str]
) -> tuple[tuple[Signature, ...], tuple[Finding, ...]]:
    """What vouches for these datasets, those whose chains can be read, and what is wrong with it.

    `EnvironmentProblem` E0903 when there is a signature, and the library is missing to check it.
    """
    found: list[Signature] = []
    wrong: list[Finding] = []
    for name in names:
        try:
            state = workspace.projection(name)
        except (OdfbuildError, ValueError):
            continue  # a damaged chain, which integrity reports
        if state is None:
            continue
        try:
            store = workspace.dataset(name)
            store.statements()  # are checked, too
            found.append(_signature(workspace, store, state))
        except (IntegrityError, PersonalDataError) as error:
            wrong.append(fault(workspace.cache, name, error))
    return tuple(found), tuple(wrong)


def _signature(workspace: Workspace, store: DatasetStore, state: Projection) -> Signature:
    owner = workspace.elsewhere.owner(store) if workspace.elsewhere is not None else None
    signed = seen_statement(store)
    if signed is None:
        return Signature(store.name, owner, None, state.blocks)
    file = store.path / "info" / FILE
    check_signature(signed, state.dataset_id, store.name, str(file))
    said = signed.statement
    since = state.blocks - said.blocks
    if since >= 0 and not _is_block(store, state, said):
        raise IntegrityError(
            f"the chain of '{store.name}' is not the one that its owner signed",
            code="E1084",
            dataset=store.name,
            notes=(
                f"signed: block #{said.blocks - 1} {said.head}, at {said.time}",
                f"file: {file}",
            ),
            help=f"restore chains/{store.name} (git checkout), or pull it again and ask the owner",
        )
    return Signature(store.name, owner, said, since)


def _is_block(store: DatasetStore, state: Projection, said: Statement) -> bool:
    """Whether the signed block is that one of the chain."""
    blocks = store.walk(state.head)
    return any(
        block.sequence_number == said.blocks - 1 and hash == said.head for hash, block in blocks
    )
