"""A copy of the example project, driven through the real program, looked at without it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from odfbuild.cli.main import run
from odfbuild.engine.contract import Engine
from tests.apply.in_process import share

EXAMPLE = Path(__file__).parents[2] / "example_project"
PROGRAM = Path(sys.executable).with_name("odfbuild")
MADE_BY_APPLY = ("chains", ".odfbuild", ".odfbuild-keys", "lake")


@dataclass(frozen=True)
class Done:
    """A finished command: exit code, output, seconds of CPU of it and its children."""

    code: int
    out: str
    err: str
    cpu: float

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class ExampleProject:
    """A project folder."""

    root: Path
    engine: Engine | None = None
    """What its commands run on in this process; without, each is a process with an engine."""

    @classmethod
    def fresh(cls, root: Path) -> ExampleProject:
        """The example as it is committed: nothing applied, no month arrived since."""
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(*MADE_BY_APPLY))
        for waiting in (EXAMPLE / "incoming").iterdir():
            (root / "data" / "flights" / waiting.name).unlink(missing_ok=True)
        return cls(root)

    @classmethod
    def applied(cls, temporary: pytest.TempPathFactory) -> ExampleProject:
        """The example, applied once for all modules and processes of a test run: only for copies.

        It takes half a minute of four cores, and three modules begin with it.
        """
        base = temporary.getbasetemp()
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        done, staged = shared / "example-applied", shared / "example-being-applied"
        with (shared / "example.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(staged, ignore_errors=True)
                cls.fresh(staged).ok("apply", "--auto-approve")
                staged.rename(done)
        return cls(done)

    def copy(self, root: Path) -> ExampleProject:
        shutil.copytree(self.root, root)
        return replace(self, root=root)

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> Done:
        if self.engine is not None and env is None:
            return self._run_here(self.engine, args)
        return self._run([str(PROGRAM), *args], env or {})

    def ok(self, *args: str) -> Done:
        done = self.run(*args)
        assert done.code == 0, done.text
        return done

    def next_month(self) -> None:
        done = self._run([sys.executable, "next_month.py"], {})
        assert done.code == 0, done.text

    def _run_here(self, engine: Engine, args: Sequence[str]) -> Done:
        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
        with pytest.MonkeyPatch.context() as patch:
            share(engine, patch)
            patch.chdir(self.root)
            patch.setenv("NO_COLOR", "1")
            patch.setenv("COLUMNS", "160")
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            code = run([*args])
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return Done(code, out, err, 0)

    def _run(self, command: Sequence[str], env: Mapping[str, str]) -> Done:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "160", **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Done(done.returncode, done.stdout, done.stderr, cpu)

    def plan(self) -> dict[str, dict[str, Any]]:
        """The datasets with which the plan has something to do, by name."""
        done = self.ok("plan", "--format", "json")
        datasets = json.loads(done.out)["datasets"]
        return {dataset["name"]: dataset for dataset in datasets if dataset["actions"]}

    def chains(self) -> dict[str, Path]:
        """Folder of each dataset's chain."""
        aliases = (self.root / "chains").glob("*/info/alias")
        return {alias.read_text().strip(): alias.parents[1] for alias in aliases}

    def heads(self) -> dict[str, str]:
        return {name: (path / "refs" / "head").read_text() for name, path in self.chains().items()}

    def slices(self, name: str) -> list[str]:
        return sorted(str(path) for path in (self.chains()[name] / "data").iterdir())

    def table(self, db: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
        """All records of a dataset, system columns included, read by DuckDB."""
        return db.read_parquet(self.slices(name))

    def amounts_to(self, db: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
        """The records that are left when retractions and corrections are carried out."""
        columns = '* EXCLUDE ("offset", op, system_time)'
        added, taken = (
            self.table(db, name).filter(f"op IN {ops}").project(columns) for ops in ((0, 3), (1, 2))
        )
        return added.query("added", f"FROM added EXCEPT ALL ({taken.sql_query()})")

    def count(self, db: duckdb.DuckDBPyConnection, name: str) -> int:
        return int(self.table(db, name).aggregate("count(*)").fetchall()[0][0])

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.root / "datasets" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def connect(root: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB in UTC with the tables of the CSV files below `root`."""
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    for table in ("flights", "weather", "planes", "airports", "airlines"):
        db.execute(
            f"CREATE VIEW {table} AS SELECT * FROM "
            f"read_csv('{root}/data/{table}/*.csv*', nullstr='NA', header=true)"
        )
    return db
