"""Statements about records of a dataset that are no longer there: `info/statements` beside it.

A statement counts only with the signature of the dataset's key. Statements are added, never taken
away: by their owner, and by a pull, which merges those of others with those that are here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from odfbuild.errors import PersonalDataError
from odfbuild.extras import require_cryptography
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import why_forged
from odfbuild.odf.stewardship import (
    FILE,
    Erasure,
    Signed,
    Statement,
    Withdrawal,
    encode_statements,
    in_order,
    parse_statements,
)
from odfbuild.store.files import folder_lock, make_folder, read_inside, write_file
from odfbuild.store.references import folders
from odfbuild.store.storage import ObjectKind

if TYPE_CHECKING:
    from odfbuild.odf.model import MetadataBlock
    from odfbuild.store.keys import PrivateKeys

HERE = "restore that file (git checkout), or pull the dataset again"
THERE = "ask whoever publishes it; nothing was changed"


def statements_of(folder: str, name: str, dataset_id: DatasetId) -> tuple[Signed, ...]:
    """What is said about the dataset in `folder`, the oldest first; signatures are checked.

    `PersonalDataError` E1624 where the file cannot be read, E1625 for a forged statement.
    """
    file = f"{folder}/info/{FILE}"
    try:
        data = read_inside(file)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return checked_statements(data, dataset_id, name, file, HERE)


def checked_statements(
    data: bytes, dataset_id: DatasetId, name: str, place: str, help: str
) -> tuple[Signed, ...]:
    """The statements in `data`, from `place`; errors as `statements_of`, with that `help`."""
    found = _parsed(data, name, place, help)
    if found:
        require_cryptography("signatures of statements")
    for each in found:
        said = each.statement
        why = why_forged(said, each.proof, dataset_id)
        if why is None:
            continue
        raise PersonalDataError(
            f"a statement about '{name}' is forged: it {why}",
            code="E1625",
            dataset=name,
            notes=(
                f"from: {place}",
                f"dataset:    {dataset_id}",
                f"statement:  {said.KIND} of {said.time} about {said.dataset_id}",
                f"signed by:  {each.proof.signer}",
            ),
            help=help,
            exit_code=3,
        )
    return found


def sign_statement(keys: PrivateKeys, statement: Statement, name: str) -> Signed:
    """Sign with the dataset's key; `PersonalDataError` E1626 where it is not here."""
    key = keys.key(statement.dataset_id)
    if key is None:
        raise PersonalDataError(
            f"the private key of '{name}' is not here, and a statement about it has to be signed",
            code="E1626",
            dataset=name,
            notes=(f"dataset: {statement.dataset_id}", "nothing was changed"),
            help="run the command where the key is, or import it: `odfbuild key import FILE`",
        )
    return Signed.sign(statement, key)


def add_statements(folder: Path, name: str, more: Iterable[Signed]) -> int:
    """Keep further statements about the dataset in `folder`, durably; how many of them are new.

    Their signatures are the caller's to check. `PersonalDataError` E1624 where those that are here
    cannot be read.
    """
    new = tuple(more)
    if not new:
        return 0
    info = folder / "info"
    make_folder(info)
    with folder_lock(info):
        known = _unchecked(info / FILE, name)
        all_ = in_order((*known, *new))
        if len(all_) > len(known):
            write_file(info / FILE, encode_statements(all_))
    return len(all_) - len(known)


def _unchecked(file: Path, name: str) -> tuple[Signed, ...]:
    try:
        data = read_inside(str(file))
    except FileNotFoundError:
        return ()
    return _parsed(data, name, str(file), HERE)


def _parsed(data: bytes, name: str, place: str, help: str) -> tuple[Signed, ...]:
    try:
        return parse_statements(data)
    except ValueError as error:
        raise PersonalDataError(
            f"the statements about '{name}' cannot be read: {error}",
            code="E1624",
            dataset=name,
            notes=(f"from: {place}",),
            help=help,
            exit_code=3,
        ) from None


def withdrawals(statements: Collection[Signed]) -> tuple[Withdrawal, ...]:
    """What was withdrawn."""
    return tuple(e.statement for e in statements if isinstance(e.statement, Withdrawal))


def erasures(statements: Collection[Signed]) -> tuple[Erasure, ...]:
    """Who was erased."""
    return tuple(e.statement for e in statements if isinstance(e.statement, Erasure))


Links = Iterable[tuple[Multihash, "MetadataBlock"]]
Withdrawn = Mapping[tuple[ObjectKind, Multihash], Withdrawal]
"""Objects that were withdrawn, and the statement that says so."""


def withdrawn_objects(links: Links, statements: Collection[Signed]) -> Withdrawn:
    """What of the blocks `links`, newest first, was withdrawn.

    What a newer block refers to stays, and so does the newest checkpoint. A statement about a block
    of another history says nothing about this one.
    """
    from odfbuild.odf.model import AddData, ExecuteTransform

    ends = {each.through: each for each in withdrawals(statements)}
    found: dict[tuple[ObjectKind, Multihash], Withdrawal] = {}
    kept: set[tuple[ObjectKind, Multihash]] = set()
    by, has_checkpoint = None, False
    for hash, block in links if ends else ():
        by = ends.get(hash, by)
        event = block.event
        if not isinstance(event, AddData | ExecuteTransform):
            continue
        named: list[tuple[ObjectKind, Multihash]] = []
        if event.new_data is not None:
            named.append(("data", event.new_data.physical_hash))
        if event.new_checkpoint is not None:
            named.append(("checkpoints", event.new_checkpoint.physical_hash))
            if not has_checkpoint:
                kept.add(named[-1])
            has_checkpoint = True
        for each in named:
            if by is None:
                kept.add(each)
            elif each not in kept:
                found[each] = by
    return found


def refuse_withdrawn(name: str, kind: ObjectKind, hash: Multihash, by: Withdrawal) -> NoReturn:
    """`PersonalDataError` E1630: somebody needs an object that its owner withdrew."""
    raise PersonalDataError(
        f"{'data' if kind == 'data' else 'checkpoint'} object {hash} of '{name}' was withdrawn by "
        f"the statement of {by.time}",
        code="E1630",
        dataset=name,
        notes=(f"by: {by.by}", f"why: {by.why}"),
        help="its records cannot be had again; what came later can be read",
    )


def erased_names(state: Path) -> frozenset[bytes]:
    """The keyed hashes of all subjects that statements in the project's chains say were erased.

    Only a signature makes them count: a statement that fits no dataset's key is E1625.
    """
    found: set[bytes] = set()
    for name in folders(state):
        inner = [f"{name}/{each}" for each in folders(state / name)]
        for alias in (name, *inner):
            file = state / alias / "info" / FILE
            for each in _unchecked(file, alias) if file.is_file() else ():
                # The identity of each is in its statement, which its key has signed: who could
                # forge that has the key of a dataset.
                [signed] = checked_statements(
                    each.line, each.statement.dataset_id, alias, str(file), HERE
                )
                found.update(name for said in erasures([signed]) for name in said.subjects)
    return frozenset(found)
