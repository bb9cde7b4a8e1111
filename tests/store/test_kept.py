"""What is kept in two files is what was saved last, or what was saved before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.store.disposable import Kept

STAMP = b"stamp\n"
MANY = {f"key-{number:03}": (number, number + 1) for number in range(100)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a hundred entries, each with a byte."""
    file = tmp_path / "cache" / "entries.bin"
    Kept(file, STAMP).save(MANY, moved=lambda entries: (entries, [bytes(range(100))]))
    return file


def test_entries_and_bytes_come_back(file: Path) -> None:
    kept = Kept(file, STAMP)
    assert kept.entries == MANY
    assert kept.size == 100
    assert kept.part(7, 9) == bytes([7, 8])


def test_few_changes_are_written_beside(file: Path) -> None:
    whole = file.read_bytes()
    kept = Kept(file, STAMP)
    now = dict(kept.entries)
    del now["key-001"]
    now["key-002"] = (kept.size, kept.size + 2)
    now["new"] = (5, 6)
    kept.save(now, [b"ab"])
    assert file.read_bytes() == whole

    again = Kept(file, STAMP)
    assert again.entries == now
    assert again.part(*again.entries["key-002"]) == b"ab"
    assert again.part(*again.entries["new"]) == bytes([5])

    after = {**again.entries, "key-003": (again.size, again.size + 1)}
    again.save(after, [b"c"])
    last = Kept(file, STAMP)
    assert last.entries == after
    assert [last.part(*last.entries[key]) for key in ("key-002", "key-003")] == [b"ab", b"c"]
    assert file.read_bytes() == whole


def test_what_is_as_it_was_again_is_kept_so(file: Path) -> None:
    first = Kept(file, STAMP)
    first.save({**first.entries, "key-000": (9, 9)})
    second = Kept(file, STAMP)
    second.save({**second.entries, "key-000": (0, 1)})
    assert Kept(file, STAMP).entries == MANY


def test_many_changes_are_written_anew(file: Path) -> None:
    kept = Kept(file, STAMP)
    few = {key: kept.entries[key] for key in sorted(kept.entries)[:50]}
    kept.save(few, moved=lambda entries: (entries, [bytes(50)]))
    assert list(file.parent.glob("*.changes.bin")) == []
    assert Kept(file, STAMP).entries == few
    assert Kept(file, STAMP).size == 50


@pytest.mark.parametrize("damage", [b"", b"stamp\n", b"stamp\n" + bytes(100)])
def test_changes_that_are_damaged_are_none(file: Path, damage: bytes) -> None:
    kept = Kept(file, STAMP)
    kept.save({**kept.entries, "key-000": (9, 9)})
    (changes,) = file.parent.glob("*.changes.bin")
    changes.write_bytes(damage)
    assert Kept(file, STAMP).entries == MANY


def test_changes_of_another_whole_are_none(file: Path) -> None:
    kept = Kept(file, STAMP)
    kept.save({**kept.entries, "key-000": (9, 9)})
    (changes,) = file.parent.glob("*.changes.bin")
    of_before = changes.read_bytes()
    other = {"only": (1, 2)}
    kept.save(other)
    changes.write_bytes(of_before)
    assert Kept(file, STAMP).entries == other


def test_another_stamp_begins_with_nothing(file: Path) -> None:
    kept = Kept(file, b"other\n")
    assert (kept.entries, kept.size) == ({}, 0)
