"""Sign heads that are published, and check what vouches for heads that are pulled.

The newest statement that came with a pull lies in the dataset's own `info/`, and is committed to
Git with the chain. `vouching` decides; here are files, keys and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.errors import IntegrityError, OdfbuildError, RepositoryError
from odfbuild.exchange.repositories.head_rules import Doubt, Line, Refusal, Vouched, judge
from odfbuild.exchange.repositories.history import blocks_behind
from odfbuild.extras import require_cryptography
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead, Statement
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.signed_heads import ASK, check_signature, read_statement, seen_statement

if TYPE_CHECKING:
    from odfbuild.exchange.repositories.contract import RemoteDataset
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace

_LOOKS = 4
"""At a dataset that is being published while it is looked at."""


def sign_head(workspace: Workspace, name: str, state: Projection) -> SignedHead | None:
    """What to publish as `info/signed-head` with the head of `state`; `None`: unsigned.

    The newest statement that was seen is forwarded if it is about this head. Otherwise the
    dataset's key signs, if it is here.
    """
    seen = seen_statement(workspace.dataset(name))
    if seen is not None and seen.statement.head == state.head:
        return seen
    key = workspace.private_keys.key(state.dataset_id)
    if key is None:
        return None
    now = Timestamp.now()
    statement = Statement(
        dataset_id=state.dataset_id,
        head=state.head,
        blocks=state.blocks,
        # A clock that was put back does not make an owner contradict herself.
        time=now if seen is None else max(now, Timestamp(seen.statement.time.ns + 1)),
    )
    return SignedHead.sign(statement, key)


def line_of(store: DatasetStore, head: Multihash, blocks: int) -> Line:
    """The history here up to `head`, which is the block with that number."""

    def older(block: Multihash) -> int | None:
        behind = blocks_behind(store, head, block)
        return None if behind is None else blocks - behind

    return Line({head: blocks}, older)


def settled(remote: RemoteDataset) -> tuple[Multihash | None, bytes | None]:
    """Head and statement of a dataset, from the same moment where it is just being published."""
    head = remote.head()
    for _ in range(_LOOKS):
        said = None if head is None else remote.info(FILE)
        known, head = head, head if said is None else remote.head()
        if known == head:
            break
    return head, said


def is_signed(remote: RemoteDataset, head: Multihash) -> bool:
    """Whether a statement about that head lies there, signed by its dataset's key."""
    known = stated_at(remote)
    if known is None or known.statement.head != head:
        return False
    require_cryptography("signatures of heads")
    return known.holds


def stated_at(remote: RemoteDataset) -> SignedHead | None:
    """The statement that lies there, unchecked; `None`: nothing that is one."""
    said = remote.info(FILE)
    try:
        return None if said is None else SignedHead.parse(said)
    except ValueError:
        return None


def check_vouched(
    store: DatasetStore,
    address: str,
    dataset_id: DatasetId,
    served: Line,
    said: bytes | None,
    *,
    required: bool,
    pinned: Line | None = None,
    reset: bool = False,
    unsigned: bool = False,
    news: bool = True,
) -> Vouched:
    """Check what vouches for the head of `served` at `address`, where `said` is the statement.

    `store` is the dataset here, which may have no head yet; `pinned` is its history where only
    pulls move it. `required` is the repository's policy. For the others see `judge`.

    `IntegrityError` E1080 for a statement that cannot be read, E1081 for a forged one, E1083 for a
    rollback, E1084 for a fork; `RepositoryError` E1082 for a head that has to be signed and is not,
    E1091 for one that was signed before.
    """
    offered = None
    if said is not None:
        offered = read_statement(said, store.name, address, ASK)
        check_signature(offered, dataset_id, store.name, address)
    seen = seen_statement(store)
    if seen is not None:
        check_signature(seen, dataset_id, store.name, f"{store.path / 'info' / FILE}")
    found = judge(
        served,
        offered,
        seen=seen,
        pinned=pinned,
        required=required,
        reset=reset,
        unsigned=unsigned,
        news=news,
    )
    if isinstance(found, Vouched):
        return found
    raise _refused(found, served, store.name, address)


def _refused(refusal: Refusal, served: Line, name: str, address: str) -> OdfbuildError:
    seen = refusal.seen
    if isinstance(seen, Statement):
        other = f"signed: block #{seen.blocks - 1} {seen.head}, at {seen.time}"
    else:
        other = f"here:   {seen}" if seen is not None else "signed: nothing"
    notes = (f"from:   {address}", f"served: block #{served.blocks - 1} {served.head}", other)
    match refusal.doubt:
        case Doubt.UNSIGNED:
            return RepositoryError(
                f"the head of '{name}' is not signed, and its repository is set to "
                "`signatures: required`",
                code="E1082",
                dataset=name,
                notes=notes,
                help="ask its owner to publish it with `odfbuild push`, or set `signatures: "
                "accepted`",
            )
        case Doubt.NO_LONGER_SIGNED:
            return RepositoryError(
                f"the head of '{name}' is not signed, and the owner of the dataset signed before",
                code="E1091",
                dataset=name,
                notes=(*notes, "nothing was changed"),
                help="ask its owner to publish it with `odfbuild push` where its private key is; "
                f"`odfbuild pull {name} --allow unsigned:{name}` takes it as it is",
            )
        case Doubt.MISCOUNTED:
            return IntegrityError(
                f"the signed head of '{name}' is another block of its chain than it says",
                code="E1081",
                dataset=name,
                notes=notes,
                help=ASK,
            )
        case Doubt.ROLLBACK:
            return IntegrityError(
                f"rollback: the repository serves an older head of '{name}' than was seen before",
                code="E1083",
                dataset=name,
                notes=notes,
                help="the repository is out of date, or somebody hides what is newer: pull from "
                f"another one, or ask the owner; if the owner reset it, `--allow reset:{name}`",
            )
        case Doubt.FORK:
            return IntegrityError(
                f"fork: the repository serves another head of '{name}' than was seen before",
                code="E1084",
                dataset=name,
                notes=notes,
                help="somebody published two histories: ask the owner which one counts; if the "
                f"served one was signed later, `--allow reset:{name}` accepts it",
            )
