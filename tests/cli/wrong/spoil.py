"""Ways to make a project wrong, and what a wrong input is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odfbuild.cli.main import run
from tests.apply.tiny import Tiny

Spoil = Callable[[Tiny], Any]


@dataclass(frozen=True)
class Case:
    """A command that ends with an error of `code`; `spoil` makes the project wrong before.

    The project was applied, or is `fresh`. `exit` is the exit code, `env` is added to the
    environment of the command, with `{root}` for the folder of the project.
    """

    code: str
    command: str
    spoil: Spoil = lambda tiny: None
    fresh: bool = False
    exit: int = 1
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Flaw:
    """A chain that `verify --integrity` finds wrong; `dataset` is the one that it blames.

    All are in one project, each in a pair of datasets of its own.
    """

    code: str
    spoil: Spoil
    dataset: str = "root"


@dataclass(frozen=True)
class Pair(Tiny):
    """A root and a derivative in a project of many pairs."""

    prefix: str = ""


def called(tiny: Tiny, name: str) -> str:
    """What a dataset of a project is called."""
    return tiny.prefix + name if isinstance(tiny, Pair) else name


# --- Ways to spoil a project ---


def put(path: str, text: str | bytes) -> Spoil:
    """Write a file."""

    def spoil(tiny: Tiny) -> None:
        file = tiny.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return spoil


def swap(path: str, old: str, new: str) -> Spoil:
    """Replace a text in a file."""

    def spoil(tiny: Tiny) -> None:
        file = tiny.root / path
        text = file.read_text()
        assert old in text, (path, old)
        file.write_text(text.replace(old, new))

    return spoil


def config(lines: str) -> Spoil:
    """Add lines to `odfbuild.yaml`."""
    return lambda tiny: put("odfbuild.yaml", (tiny.root / "odfbuild.yaml").read_text() + lines)(
        tiny
    )


def table(format: str, lines: str) -> Spoil:
    """A table of all datasets in `odfbuild.yaml`, with more settings."""
    entry = f"{{match: ['*'], format: {format}, location: lake, {lines}}}"
    return config(f"  tables: [{entry}]\n")


def template(text: str) -> Spoil:
    """A template with these lines in front of a definition."""
    return put("datasets/made.yaml.j2", text)


def event(lines: str, dataset: str = "root") -> Spoil:
    """Add an event to a definition."""

    def spoil(tiny: Tiny) -> None:
        file = tiny.root / "datasets" / f"{dataset}.yaml"
        file.write_text(file.read_text() + lines)

    return spoil


def both(*spoils: Spoil) -> Spoil:
    """One after the other."""

    def spoil(tiny: Tiny) -> None:
        for each in spoils:
            each(tiny)

    return spoil


def said(*arguments: str) -> Spoil:
    """Run another command before; it must succeed."""

    def spoil(tiny: Tiny) -> None:
        assert run([*arguments]) == 0, arguments

    return spoil


def git(*commands: str) -> Spoil:
    """Run Git."""

    def spoil(tiny: Tiny) -> None:
        for command in ("init -q -b main", *commands):
            words = [w.replace("_", " ") if w.startswith("msg") else w for w in command.split()]
            subprocess.run(
                ["git", "-c", "user.name=Ann", "-c", "user.email=a@example.org", *words],
                cwd=tiny.root,
                check=True,
                capture_output=True,
            )

    return spoil


def move_back(name: str, blocks: int = 1) -> Spoil:
    """Let a chain end some blocks earlier."""

    def spoil(tiny: Tiny) -> None:
        store = tiny.workspace().dataset(called(tiny, name))
        head = store.head()
        assert head is not None
        found = [hash for hash, _ in store.walk(head)]
        (store.path / "refs" / "head").write_text(str(found[blocks]))

    return spoil


def data_file(name: str, change: Callable[[Path], object]) -> Spoil:
    """Change the data file of a dataset."""

    def spoil(tiny: Tiny) -> None:
        for file in (tiny.root / "chains" / called(tiny, name) / "data").iterdir():
            file.chmod(0o644)
            change(file)

    return spoil


def block_file(name: str, change: Callable[[Path], object], back: int = 1) -> Spoil:
    """Change the file of a block."""

    def spoil(tiny: Tiny) -> None:
        store = tiny.workspace().dataset(called(tiny, name))
        head = store.head()
        assert head is not None
        hashes = [hash for hash, _ in store.walk(head)]
        shutil.rmtree(tiny.root / ".odfbuild", ignore_errors=True)
        change(store.block_path(hashes[back]))

    return spoil


DERIVED = "datasets/derived.yaml"
ROOT = "datasets/root.yaml"

POLLED = "kind: FilesGlob\n        path: data/*.csv\n        order: ByName"
NO_SOURCE = swap(ROOT, POLLED, "kind: Url\n        url: file:///nowhere/at/all.csv")
PUSHED_TO = """\
kind: DatasetSnapshot
version: 1
content:
  name: pushed
  kind: Root
  metadata:
"""
FIXED = """\
    - kind: SetDataSchema
      schema:
        fields:
          - {name: x, type: {kind: Int64}}
"""
SCHEMA = """\
    - kind: SetDataSchema
      schema:
        fields:
          - {name: offset, type: Int64}
          - {name: op, type: Int32}
          - {name: system_time, type: Timestamp}
          - {name: event_time, type: Timestamp}
"""
POLL = "    - kind: SetVocab\n      offsetColumn: place\n"
PUSHED = (
    "    - kind: AddPushSource\n      sourceName: p\n      read: {kind: NdJson}\n"
    "      merge: {kind: Append}\n"
)


def saved(tiny: Tiny) -> None:
    said("plan", "-q", "-o", "plan.json")(tiny)


def altered(tiny: Tiny) -> None:
    saved(tiny)
    swap("plan.json", '"complete": true', '"complete": false')(tiny)
