"""Look at a source without reading it, running anything or asking the network.

Called for every root of a project on every plan, so the path of one small file is kept short:
`os.scandir` and plain strings, no `pathlib`, nothing imported that a plan does not need.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from odfbuild.errors import IngestError
from odfbuild.ingest.content import content_of
from odfbuild.ingest.count import count_records
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.fetch.files_glob import (
    display_name,
    last_name,
    matching_files,
    modified,
    new_files,
)
from odfbuild.ingest.fetch.result import LAST_MODIFIED
from odfbuild.ingest.fetch.sftp_address import is_elsewhere, is_sftp
from odfbuild.odf.model import (
    FetchStepFilesGlob,
    FetchStepUrl,
    PrepStep,
    ReadStep,
    SetPollingSource,
    SourceState,
)

Count = Callable[[Sequence[PrepStep], ReadStep, str], int | None]
"""As `count_records`."""

COUNTED_BYTES = 64 << 20
"""Above this many bytes on disk records are not counted."""

_ASKED_AT_APPLY = {
    "Url": "the address is checked for changes",
    "Container": "the container runs",
    "Mqtt": "the broker is polled for messages",
    "EthereumLogs": "the node is polled for new blocks",
}


def listing(source: SetPollingSource, root: str) -> list[str]:
    """The files here that match the pattern of a source, if it has one."""
    step = source.fetch
    if not isinstance(step, FetchStepFilesGlob) or is_elsewhere(step.path):
        return []
    return matching_files(step.path, root)


def probe(
    source: SetPollingSource,
    state: SourceState | None,
    root: Path,
    listed: list[str] | None = None,
    content: Callable[[str], str] = content_of,
    may_open: Callable[[str], bool] = lambda _: True,
    count: Count = count_records,
) -> SourceFacts:
    """Compare a source with the state that the chain recorded.

    `listed` is its listing, if that is known already; `content` tells what a file holds, `may_open`
    which one may be looked into, `count` how many records one has.
    Raises `IngestError` when the source itself is wrong, such as two files with one base name.
    """
    step = source.fetch
    if isinstance(step, FetchStepFilesGlob) and is_elsewhere(step.path):
        return SourceFacts("unknown", message=_listed_at_apply(step.path))
    if isinstance(step, FetchStepFilesGlob):
        return _probe_glob(source, step, state, str(root), listed, may_open, count)
    if isinstance(step, FetchStepUrl) and step.url.startswith("file:") and "${{" not in step.url:
        return _probe_file(source, step.url, state, root, content, may_open, count)
    return SourceFacts("unknown", message=f"{_ASKED_AT_APPLY[step.KIND]} at apply")


def _listed_at_apply(pattern: str) -> str:
    if is_sftp(pattern):
        return "the server is checked for new files at apply"
    return "the object store is checked for new objects at apply"


def _probe_glob(
    source: SetPollingSource,
    step: FetchStepFilesGlob,
    state: SourceState | None,
    root: str,
    matching: list[str] | None,
    may_open: Callable[[str], bool],
    count: Count,
) -> SourceFacts:
    if matching is None:
        matching = matching_files(step.path, root)
    last = last_name(state)
    if not matching and last is None:
        return SourceFacts("missing", message=f"no file matches '{step.path}'")
    new = new_files(step, matching, state, root=root)
    if not new:
        gone = "" if matching else f"no file matches '{step.path}' any more, and "
        return SourceFacts("unchanged", message=f"{gone}nothing comes after {last}")
    names = tuple(display_name(path, root) for path in new)
    more = f" and {len(new) - 1} more" if len(new) > 1 else ""
    message = f"{names[0]}{more} {'is' if len(new) == 1 else 'are'} new"
    return _news(source, new, names, message, may_open, count)


def probe_late(
    source: SetPollingSource,
    late: list[str],
    state: SourceState | None,
    root: Path,
    listed: list[str],
    may_open: Callable[[str], bool],
    count: Count = count_records,
) -> SourceFacts:
    """What is to be read of a source of files if those that came `late` are read first."""
    step = source.fetch
    assert isinstance(step, FetchStepFilesGlob)
    paths = [*late, *new_files(step, listed, state, root=str(root))]
    names = tuple(display_name(path, str(root)) for path in paths)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    came = "came late" if len(paths) == len(late) else f"are new, {len(late)} of them late"
    return _news(source, paths, names, f"{names[0]}{more} {came}", may_open, count)


def _probe_file(
    source: SetPollingSource,
    url: str,
    state: SourceState | None,
    root: Path,
    content: Callable[[str], str],
    may_open: Callable[[str], bool],
    count: Count,
) -> SourceFacts:
    from odfbuild.ingest.fetch.local_paths import local_path

    path = local_path(url, root)
    name = display_name(path, str(root))
    try:
        moment = modified(path)
    except (FileNotFoundError, NotADirectoryError):
        return SourceFacts("missing", message=f"there is no file {name}")
    if state is None:
        return _news(source, [path], (name,), f"{name} is new", may_open, count)
    if state.kind == LAST_MODIFIED:  # as an earlier release or another tool recorded it
        if state.value == str(moment):
            return SourceFacts("unchanged", message=f"{name} was not modified since {moment}")
        message = f"{name} was modified at {moment}; from now on its content is compared"
        return _news(source, [path], (name,), message, may_open, count)
    if not may_open(path):
        why = "it lies outside of the project, and ODFBUILD_FOLDERS does not name its folder"
        return SourceFacts("unknown", message=f"{name} is compared at apply: {why}")
    try:
        if state.value == content(path):
            return SourceFacts("unchanged", message=f"the content of {name} has not changed")
    except OSError:
        pass  # what cannot be read is reported when it is ingested
    return _news(source, [path], (name,), f"the content of {name} changed", may_open, count)


def _news(
    source: SetPollingSource,
    paths: list[str],
    names: tuple[str, ...],
    message: str,
    may_open: Callable[[str], bool],
    count: Count,
) -> SourceFacts:
    size = 0
    for path in paths:
        size += os.stat(path).st_size  # noqa: PTH116  # pathlib costs a third of the time
    records: int | None = None
    if size <= COUNTED_BYTES and all(map(may_open, paths)):
        try:
            records = _count_all(source, paths, count)
        except (OSError, EOFError, IngestError):
            records = None  # what cannot be read is reported when it is ingested
    return SourceFacts("news", names, records, True, size, message)


def _count_all(source: SetPollingSource, paths: list[str], count: Count) -> int | None:
    total = 0
    for path in paths:
        records = count(source.prepare or (), source.read, path)
        if records is None:
            return None
        total += records
    return total
