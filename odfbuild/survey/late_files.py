"""Files of a pattern that came late: behind the last one in their order, and never read.

The state of a source is the name of its last file, which peers read, too. Which files were read is
told by the whole chain: each block has the state that its file left, and that of a late file, which
leaves the state as it was, names it in the attribute `LATE_FILE`. So every clone finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from odfbuild.errors import EnvironmentProblem, IngestError, IntegrityError
from odfbuild.ingest.fetch.files_glob import display_name, last_name, new_files
from odfbuild.ingest.fetch.result import ETAG
from odfbuild.ingest.probe import listing
from odfbuild.ingest.read_marks import key_of
from odfbuild.ingest.resume import polling_state
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddData,
    FetchStepFilesGlob,
    SetPollingSource,
)
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.workspace import Workspace

LATE_FILE = "odfbuild/late-file"
"""Attribute of `AddData`: the base name of the file that its records come from."""
_STAMP = b"odfbuild late files 1\n"


class _Read(NamedTuple):
    names: set[str]
    blocks: set[str]


def late_files(
    workspace: Workspace,
    name: str,
    state: Projection,
    source: SetPollingSource,
    root: str,
    among: Sequence[str] | None = None,
) -> list[str]:
    """Paths of the late files of a dataset, in the order of its source.

    Of those `among` (default: all that match). Nothing where the chain cannot be read.
    """
    last, step = last_name(polling_state(state)), source.fetch
    if last is None or not isinstance(step, FetchStepFilesGlob):
        return []
    if among is None:
        matching = listing(source, root)
        coming = set(new_files(step, matching, polling_state(state), root=root))
        among = [path for path in matching if path not in coming]
    if not any(_base(path) != last for path in among):
        return []
    try:
        read = _files_read(workspace, name, state)
    except (IntegrityError, EnvironmentProblem):
        return []  # `apply`, which may connect to the storage of chains, looks again
    in_vain = _in_vain(workspace.cache, state)
    known = read.names | {each for each, head in in_vain.items() if head in read.blocks}
    return new_files(step, [path for path in among if _base(path) not in known], None)


def refuse_order(source: SetPollingSource, name: str, late: Sequence[str], root: str) -> None:
    """Raise `IngestError` E0439 where a late file would make old values the current ones."""
    if not source.merge.ONLY_APPENDS:
        raise IngestError(
            f"{some(late, root)} came late, and the order of files matters for "
            f"`merge.kind: {source.merge.KIND}`",
            code="E0439",
            dataset=name,
            help=f"let `ingest.lateFiles: {{{name}: warn}}` in odfbuild.yaml leave such files out, "
            "or give the file a name that comes last if its values are to count",
        )


def refused(name: str, late: Sequence[str], last: str, root: str) -> IngestError:
    """The error for late files where none may come."""
    return IngestError(
        f"{some(late, root)} came after '{last}' was read, and would never be read",
        code="E0438",
        dataset=name,
        help=f"give it a name that comes after '{last}'; or let "
        f"`ingest.lateFiles: {{{name}: read}}` in odfbuild.yaml read such files, or `warn` leave "
        "them out",
    )


def some(files: Sequence[str], root: str) -> str:
    """One of the files, and how many more there are."""
    return display_name(files[0], root) + (f" and {len(files) - 1} more" if files[1:] else "")


def remember_in_vain(workspace: Workspace, state: Projection, names: Iterable[str]) -> None:
    """Keep that late files had nothing new for a dataset as it is now, for no block tells that.

    Losing it lets them be read again, with the same result.
    """
    known = _in_vain(workspace.cache, state)
    kept = known | {_base(each): str(state.head) for each in names}
    if kept != known:
        write_disposable(_file(workspace.cache, state), _STAMP, kept)


def _files_read(workspace: Workspace, name: str, state: Projection) -> _Read:
    """Base names of all files that the chain says were read, and its blocks."""
    found = _Read(set(), set())
    for block, content in workspace.dataset(name).walk(state.head):
        found.blocks.add(str(block))
        event = content.event
        if isinstance(event, AddData):
            if event.new_source_state is not None and event.new_source_state.kind == ETAG:
                found.names.add(event.new_source_state.value)
            late = (event.extra or {}).get(LATE_FILE)
            if isinstance(late, str):
                found.names.add(late)
    return found


def _in_vain(cache: Path, state: Projection) -> dict[str, str]:
    """Heads at which late files had nothing new, by their base names."""
    return read_disposable(_file(cache, state), _STAMP) or {}


def _file(cache: Path, state: Projection) -> Path:
    return cache / "late-files" / f"{key_of(state.dataset_id)}.bin"


def _base(path: str) -> str:
    return path.rpartition("/")[2]
