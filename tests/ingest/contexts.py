"""Contexts of fetch steps, as apply makes them."""

import shutil
from dataclasses import replace
from pathlib import Path

from odfbuild.ingest.fetch import FetchContext, Fetched
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-02T03:04:05Z")
SETTINGS = IngestSettings(connect_seconds=5, idle_seconds=5, total_seconds=30)


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
