"""Check that a chain and its objects exist, without reading the objects.

Blocks are read (they are small and name the objects); of objects only presence and size are looked
at. `verify.integrity` hashes them as well.
"""

from __future__ import annotations

import os

from odfbuild.errors import Code, IntegrityError
from odfbuild.inspect.verify.finding import Finding
from odfbuild.odf.chain.step import Link
from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import ObjectKind

_RESTORE = (
    "restore the file from a backup; if the dataset is published, remove the file: it is fetched "
    "again when it is needed"
)


def missing_parts(store: DatasetStore) -> list[Finding]:
    """Blocks that are damaged or missing (the newest one of a chain), objects that are gone or cut.

    E0801 to E0805 for blocks, E0811 for a missing object, E0812 for one of another size. Nobody
    asks the storage or a repository: what is not here counts as being there.
    """
    found: list[Finding] = []
    try:
        head = store.head()
        for link in store.walk(head) if head is not None else ():
            found += _objects(store, link)
    except IntegrityError as error:
        found.append(
            Finding(
                dataset=store.name,
                code=error.code,
                message=error.message,
                help=error.help or _RESTORE,
            )
        )
    return found[::-1]


def _objects(store: DatasetStore, link: Link) -> list[Finding]:
    event = link[1].event
    if not isinstance(event, AddData | ExecuteTransform):
        return []
    committed: list[tuple[ObjectKind, Multihash, int]] = []
    if event.new_data is not None:
        committed.append(("data", event.new_data.physical_hash, event.new_data.size))
    if event.new_checkpoint is not None:
        checkpoint = event.new_checkpoint
        committed.append(("checkpoints", checkpoint.physical_hash, checkpoint.size))
    return [each for part in committed if (each := _object(store, link, *part)) is not None]


def _object(
    store: DatasetStore, link: Link, kind: ObjectKind, hash: Multihash, size: int
) -> Finding | None:
    path = store.object_path(kind, hash)
    what = "data" if kind == "data" else "checkpoint"
    code: str
    try:
        actual = os.stat(path).st_size  # noqa: PTH116  # ten thousands of them
    except FileNotFoundError:
        if not store.keeps_all or (kind, hash) in store.withdrawn():
            return None  # clones need not have what they never read
        code, text = Code.OBJECT_MISSING, "is missing"
    except OSError as error:
        code, text = Code.OBJECT_MISSING, f"cannot be read: {error.strerror}"
    else:
        if actual == size:
            return None
        code, text = "E0812", f"has {actual} bytes; {size} were committed"
    return Finding(
        dataset=store.name,
        code=code,
        message=f"{what} object {hash} {text}",
        help=_RESTORE,
        block=link[0],
        sequence_number=link[1].sequence_number,
        path=path,
    )
