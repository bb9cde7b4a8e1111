"""Two projects: one builds datasets, the other reads them as external ones. No engine but Arrow."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from odfbuild.store.workspace import Workspace
from tests.apply.in_process import Program, Said, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny


@dataclass(frozen=True)
class Pair:
    """`theirs` builds `root`; `ours` knows the repository `acme`, a folder, and defines nothing."""

    theirs: Tiny
    ours: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @classmethod
    def in_folder(
        cls, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Pair:
        """Both projects below `folder`, `root` applied once with three records."""
        share(PlainEngine(), monkeypatch)
        pair = cls(Tiny.fresh(folder / "theirs"), folder / "ours", monkeypatch, capsys)
        (pair.ours / "datasets").mkdir(parents=True)
        pair.settings("")
        pair.they("apply", "-y")
        return pair

    @property
    def repository(self) -> Path:
        """The folder that `acme` is."""
        return self.ours.parent / "acme"

    def settings(self, more: str) -> None:
        """Write odfbuild.yaml of `ours`, with more settings."""
        (self.ours / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: ours\n"
            f"  repositories: {{acme: {{url: ../acme}}}}\n{more}"
        )

    def reads(self, source: str, name: str = "mine") -> None:
        """Define a dataset of `ours` that reads `source`."""
        Tiny(self.ours).derive(name, QUERY, source)

    def they(self, *arguments: str) -> Said:
        """A command in `theirs` that must succeed."""
        return Program(self.theirs.root, self.monkeypatch, self.capsys).ok(*arguments)

    def theirs_said(self, *arguments: str) -> Said:
        """A command in `theirs`."""
        return Program(self.theirs.root, self.monkeypatch, self.capsys)(*arguments)

    def we(self, *arguments: str) -> Said:
        """A command in `ours`."""
        return Program(self.ours, self.monkeypatch, self.capsys)(*arguments)

    def publish(self, dataset: str = "root") -> None:
        """Lay a dataset of `theirs` into the repository, as any tool that copies would."""
        shutil.copytree(
            self.theirs.root / "chains" / dataset, self.repository / dataset, dirs_exist_ok=True
        )

    def pin(self, name: str = "acme/root", reference: str = "acme/root") -> None:
        """What a pull leaves of `root`: blocks, head and where it came from; no data."""
        theirs, ours = self.theirs.root / "chains" / "root", self.ours / "chains" / name
        for part in ("blocks", "refs"):
            shutil.copytree(theirs / part, ours / part, dirs_exist_ok=True)
        (ours / "info").mkdir(exist_ok=True)
        (ours / "info" / "config").write_text(
            "kind: DatasetConfig\nversion: 1\ncontent:\n"
            f"  pullAliases: [{reference}]\n  pushAliases: []\n"
        )

    def workspace(self) -> Workspace:
        """The chains of `ours`, read anew."""
        return Workspace(
            self.ours / "chains", self.ours / ".odfbuild-keys", self.ours / ".odfbuild"
        )
