"""Contexts of fetch steps, as apply makes them."""

import shutil
from dataclasses import replace
from pathlib import Path

from odfbuild.ingest.fetch import FetchContext, Fetched, fetch
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStep, SourceState
from odfbuild.odf.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-02T03:04:05Z")
# Far above what anything here takes: machines are busy.
SETTINGS = IngestSettings(connect_seconds=60, idle_seconds=60, total_seconds=300, pipes=("*",))


def at(root: Path, *, moved: bool = False, dataset: str = "some.data", **settings) -> FetchContext:
    """A run in the project `root`; `settings` differ from `SETTINGS`."""
    scratch = root / ".odfbuild" / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return FetchContext(
        project="tests",
        dataset=dataset,
        root=root,
        scratch=scratch,
        cache=root / ".odfbuild",
        inbox=root / ".odfbuild-inbox",
        now=NOW,
        settings=replace(SETTINGS, **settings),
        moved=moved,
    )


def copied(fetched: Fetched, folder: Path) -> Fetched:
    """`fetched` with a file that stays when the next one is asked for."""
    if fetched.file is None:
        return fetched
    target = folder / f"copy-{len(list(folder.iterdir()))}"
    shutil.copyfile(fetched.file, target)
    return replace(fetched, file=target)


class Poller:
    """A dataset as far as fetching sees it: what was committed, and where the source stands."""

    def __init__(self, root: Path, step: FetchStep, **settings) -> None:
        self.root = root
        self.step = step
        self.settings = settings
        self.state: SourceState | None = None
        self.committed: list[bytes | None] = []
        self.found: list[Fetched] = []

    def poll(self, *, crash: str | None = None) -> list[bytes | None]:
        """One run; returns the contents that it committed.

        `crash`: "before" the first commit, as when reading fails, or "after" it, as when the
        process is killed then.
        """
        before = len(self.committed)
        context = at(self.root, **self.settings)
        try:
            for fetched in fetch(self.step, self.state, context):
                content = None if fetched.file is None else fetched.file.read_bytes()
                if crash == "before":
                    break
                self.found.append(fetched)
                self.committed.append(content)
                self.state = fetched.state
                if crash == "after":
                    break
        finally:
            shutil.rmtree(context.scratch)
        return self.committed[before:]
