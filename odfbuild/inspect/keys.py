"""Private keys of datasets: which are here, and copies of them for another machine or for CI.

A key is the identity of its dataset. What is made without it cannot be signed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from odfbuild.errors import EnvironmentProblem, PlanError, together
from odfbuild.odf.identity import DatasetId
from odfbuild.store.key_bundle import KeyBundle
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class DatasetKey(Value):
    """A dataset (`None`: it has no chain here), and where its private key is.

    `place` is a file, or the variable of the environment that holds it; `None`: it is not here.
    """

    dataset: str | None
    id: DatasetId
    place: str | None


def dataset_keys(workspace: Workspace, names: Sequence[str] | None = None) -> list[DatasetKey]:
    """The keys of these datasets; without `names` of all, and those of datasets that are gone."""
    keys = workspace.private_keys
    ids = {name: state.dataset_id for name, state in workspace.projections(names).items()}
    found = [DatasetKey(name, each, keys.place(each)) for name, each in ids.items()]
    if names is None:
        known = set(ids.values())
        found += [DatasetKey(None, each, keys.place(each)) for each in sorted(keys.held() - known)]
    return found


def export_keys(
    workspace: Workspace, names: Sequence[str] | None, file: Path, passphrase: Callable[[], str]
) -> int:
    """Write the keys of `names`, or of all that are here, to a new encrypted file; their number.

    `PlanError` E1089 for each of `names` whose key is not here, or when none is; the passphrase is
    asked for after that. `EnvironmentProblem` E0910 when the file is there or cannot be written.
    """
    found = dataset_keys(workspace, names)
    missing = [each for each in found if each.place is None]
    if names is not None and missing:
        raise together([_no_key(each) for each in missing])
    keys = {each.id: workspace.private_keys.pem(each.id) for each in found if each.place}
    if not keys:
        raise _no_key(None)
    if file.exists():
        raise _not_written(file, "it exists, and may hold other keys")
    sealed = KeyBundle.seal({id: pem for id, pem in keys.items() if pem is not None}, passphrase())
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to:
            to.write(sealed.encode())
    except OSError as error:
        raise _not_written(file, error.strerror or str(error)) from None
    return len(keys)


def import_keys(
    workspace: Workspace, bundle: KeyBundle, passphrase: str
) -> tuple[list[DatasetKey], list[DatasetKey]]:
    """Store the keys of a bundle as files; those that were new, and those that were here.

    No file is replaced, and nothing is stored when one of the keys is not that of its dataset
    (`EnvironmentProblem` E1088).
    """
    opened = bundle.open(passphrase)
    new = set(workspace.private_keys.add(opened))
    names = {state.dataset_id: name for name, state in workspace.readable().items()}
    found = [
        DatasetKey(names.get(each), each, workspace.private_keys.place(each)) for each in opened
    ]
    return [each for each in found if each.id in new], [
        each for each in found if each.id not in new
    ]


def _not_written(file: Path, why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{file} cannot be written: {why}",
        code="E0910",
        help="give a new file in a folder that exists and that you may write to",
    )


def _no_key(key: DatasetKey | None) -> PlanError:
    what = f"the private key of '{key.dataset}'" if key else "no private key of a dataset"
    return PlanError(
        f"{what} is {'not ' if key else ''}here",
        code="E1089",
        dataset=key.dataset if key else None,
        notes=(f"identity: {key.id}",) if key else (),
        help="export it where the dataset was created, then run `odfbuild key import FILE` here",
    )
