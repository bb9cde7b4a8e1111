"""A source that looks the same is not probed again; one that may differ is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.watch import NOTHING_TO_WATCH, completed, look, looks_the_same
from odfbuild.odf.model import (
    FetchStepFilesGlob,
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepCsv,
    SetPollingSource,
)

OLD = time.time_ns() - 3_600_000_000_000


def source(fetch: FetchStepFilesGlob | FetchStepUrl) -> SetPollingSource:
    return SetPollingSource(fetch=fetch, read=ReadStepCsv(), merge=MergeStrategyAppend())


GLOB = source(FetchStepFilesGlob(path="data/*.csv"))


def write(path: Path, text: str, at: int = OLD) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(at, at))


def seen(root: Path, *files: str):
    return completed(look(GLOB, str(root)), SourceFacts("news", files), str(root))


def test_a_folder_that_nobody_touched_looks_the_same(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.csv", "x\n1\n")
    assert looks_the_same(seen(tmp_path, "data/a.csv"), str(tmp_path))


@pytest.mark.parametrize("change", ["grown", "rewritten", "added", "removed", "renamed"])
def test_every_change_of_a_folder_shows(tmp_path: Path, change: str) -> None:
    file = tmp_path / "data" / "a.csv"
    write(file, "x\n1\n")
    before = seen(tmp_path, "data/a.csv")
    match change:
        case "grown":
            write(file, "x\n1\n2\n")
        case "rewritten":
            write(file, "x\n2\n", OLD + 1)
        case "added":
            write(file.with_name("b.csv"), "x\n2\n")
        case "removed":
            file.unlink()
        case "renamed":
            file.rename(file.with_name("b.csv"))
    assert not looks_the_same(before, str(tmp_path))


def test_a_file_that_was_read_long_ago_may_change_unseen(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.csv", "x\n1\n")
    write(tmp_path / "data" / "b.csv", "x\n1\n")
    before = seen(tmp_path, "data/b.csv")
    write(tmp_path / "data" / "a.csv", "x\n1\n2\n")
    assert looks_the_same(before, str(tmp_path))


def test_a_file_written_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.csv", "x\n1\n", time.time_ns())
    assert seen(tmp_path, "data/a.csv") is None


def test_a_file_at_a_url_is_watched_and_may_be_missing(tmp_path: Path) -> None:
    step = source(FetchStepUrl(url=f"file://{tmp_path}/data/a.csv"))
    before = completed(look(step, str(tmp_path)), SourceFacts("missing"), str(tmp_path))
    assert looks_the_same(before, str(tmp_path))
    write(tmp_path / "data" / "a.csv", "x\n1\n")
    assert not looks_the_same(before, str(tmp_path))


def test_what_is_far_away_is_known_by_its_definition_alone(tmp_path: Path) -> None:
    step = source(FetchStepUrl(url="https://example.org/a.csv"))
    assert look(step, str(tmp_path)) == NOTHING_TO_WATCH
    assert looks_the_same(NOTHING_TO_WATCH, str(tmp_path))
