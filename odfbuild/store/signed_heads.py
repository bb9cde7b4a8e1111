"""The newest statement about the head of a dataset that was seen: `info/signed-head` beside it."""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import IntegrityError
from odfbuild.extras import require_cryptography
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.query_proof import why_forged
from odfbuild.odf.signed_head import FILE, SignedHead
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import make_folder, read_inside, write_file

ASK = "ask whoever publishes it; nothing was changed"


def seen_statement(store: DatasetStore) -> SignedHead | None:
    """The statement; `None` when there is none, `IntegrityError` E1080 when it cannot be read.

    Its signature is not checked.
    """
    file = store.path / "info" / FILE
    data = _content(file)
    if data is None:
        return None
    help = "restore that file (git checkout), or delete it to forget which head was seen last"
    return read_statement(data, store.name, str(file), help)


def keep_statement(store: DatasetStore, signed: SignedHead | None) -> None:
    """Remember what vouches for the chain now; `None`: nothing any more."""
    file = store.path / "info" / FILE
    if signed is None:
        file.unlink(missing_ok=True)
    elif _content(file) != signed.encode():
        make_folder(file.parent)
        write_file(file, signed.encode())


def _content(file: Path) -> bytes | None:
    try:
        return read_inside(str(file))
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_statement(data: bytes, name: str, place: str, help: str) -> SignedHead:
    """The statement in `data`, from `place`; `IntegrityError` E1080 when it is none."""
    try:
        return SignedHead.parse(data)
    except ValueError as error:
        raise IntegrityError(
            f"the signed head of '{name}' cannot be read: {error}",
            code="E1080",
            dataset=name,
            notes=(f"from: {place}",),
            help=help,
        ) from None


def check_signature(signed: SignedHead, dataset_id: DatasetId, name: str, place: str) -> None:
    """`IntegrityError` E1081 unless the key of that dataset signed the statement from `place`.

    `EnvironmentProblem` E0903 where the library is missing that can tell.
    """
    require_cryptography("signatures of heads")
    said = signed.statement
    why = why_forged(said, signed.proof, dataset_id)
    if why is None:
        return
    raise IntegrityError(
        f"the signed head of '{name}' is forged: it {why}",
        code="E1081",
        dataset=name,
        notes=(
            f"from: {place}",
            f"dataset:    {dataset_id}",
            f"statement:  {said.dataset_id}",
            f"signed by:  {signed.proof.signer}",
        ),
        help=ASK,
    )
