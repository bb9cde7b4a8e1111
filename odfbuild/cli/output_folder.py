"""A folder of files that a command writes, and later brings up to date.

A list of the files, `.odfbuild-site.json`, says that the folder is ours. It is written before the
files, so that a build that was interrupted is recognised by the next one. Files that are not on the
list are left alone, and a folder without a list is refused unless it is empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from odfbuild.errors import EnvironmentProblem
from odfbuild.store.files import PENDING
from odfbuild.values import Value

LIST = ".odfbuild-site.json"


class Written(Value):
    """How many files were written, were the same as before, and were removed."""

    written: int
    unchanged: int
    removed: int


def write_folder(folder: Path, files: Mapping[str, Callable[[], bytes]]) -> Written:
    """Bring a folder up to date; each file is replaced whole, and only if its bytes differ.

    `EnvironmentProblem` E1260 for a folder with other files, E1261 for a file or link of somebody
    else where one is to be written, E0910 when it cannot be written.
    """
    before = _listed(folder)
    _check_own(folder, files, before)
    try:
        return _write(folder, files, before)
    except OSError as error:
        raise EnvironmentProblem(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            code="E0910",
            help="give a folder that you may write to, and run the same command again",
        ) from None


def _listed(folder: Path) -> frozenset[str]:
    """The files that an earlier build wrote."""
    try:
        found = json.loads((folder / LIST).read_bytes())
        names = [each for each in found["files"] if isinstance(each, str) and _is_inside(each)]
        return frozenset(names)
    except FileNotFoundError:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return frozenset()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise EnvironmentProblem(
        f"{folder} contains files that `docs build` did not write",
        code="E1260",
        notes=(f"it has no list of files ({LIST}) that can be read",),
        help="give an empty or a new folder with --out, or remove that folder",
    )


def _is_inside(path: str) -> bool:
    """Whether a path of the list, which may come with Git, stays in the folder."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts


def _check_own(folder: Path, files: Iterable[str], before: frozenset[str]) -> None:
    # A folder of ours that is a link would lead what is written elsewhere.
    parents = {parent for path in files for parent in (folder / path).relative_to(folder).parents}
    links = [str(each) for each in sorted(parents) if each.parts and (folder / each).is_symlink()]
    foreign = [path for path in files if path not in before and (folder / path).exists()]
    if found := [*links, *foreign]:
        raise EnvironmentProblem(
            f"{folder / found[0]} was not written by `docs build`",
            code="E1261",
            notes=tuple(f"also {folder / each}" for each in found[1:6]),
            help="move it elsewhere, or give another folder with --out",
        )


def _write(
    folder: Path, files: Mapping[str, Callable[[], bytes]], before: frozenset[str]
) -> Written:
    for parent in {(folder / path).parent for path in files}:
        parent.mkdir(parents=True, exist_ok=True)
    _replace(folder / LIST, _list_of(before.union(files)))
    written = sum(_replace(folder / path, make()) for path, make in files.items())
    gone = before.difference(files)
    for path in gone:
        _remove(folder, path)
    _replace(folder / LIST, _list_of(files))
    return Written(written, len(files) - written, len(gone))


def _list_of(names: Iterable[str]) -> bytes:
    text = json.dumps({"writtenBy": "odfbuild docs build", "files": sorted(names)}, indent=0)
    return text.encode() + b"\n"


def _replace(file: Path, data: bytes) -> bool:
    """Give a file these bytes, whole or not at all; false if it has them."""
    with suppress(FileNotFoundError):
        if not file.is_symlink() and file.read_bytes() == data:
            return False
    staged = file.with_name(f"{PENDING}{file.name}")
    staged.unlink(missing_ok=True)  # a link of that name would lead what is written elsewhere
    with staged.open("xb") as to:
        to.write(data)
    staged.replace(file)
    return True


def _remove(folder: Path, path: str) -> None:
    file = folder / path
    if any((folder / each).is_symlink() for each in PurePosixPath(path).parents if each.parts):
        return
    file.unlink(missing_ok=True)
    with suppress(OSError):  # other files are in it
        if file.parent != folder:
            file.parent.rmdir()
