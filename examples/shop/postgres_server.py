"""A PostgreSQL server of Debian's packages in a folder of its own. It refuses to run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_OTHER_USER = "nobody"
_SECONDS = 120


def programs() -> Path | None:
    """The folder of the newest server's programs; Debian puts only the client's on the path."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name)
    )
    if found:
        return found[-1]
    server = shutil.which("postgres")
    return Path(server).parent if server else None


@dataclass
class Postgres:
    """A server that listens on loopback. As root, `nobody` owns `folder` and runs it."""

    folder: Path
    port: int
    bin: Path
    settings: tuple[str, ...] = ()

    def create(self, access: str) -> None:
        """Make the files of the server; `access` is its `pg_hba.conf`."""
        if os.getuid() == 0:
            shutil.chown(self.folder, _OTHER_USER)
        options = ("-U", "postgres", "-A", "trust", "--no-sync")
        self._run("initdb", *options, "--encoding=UTF8", "--locale=C.UTF-8")
        (self.folder / "data" / "pg_hba.conf").write_text(access)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        options += "".join(f" -c {each}" for each in self.settings)
        waiting = ("-w", "-t", str(_SECONDS), "-l", f"{self.folder}/log")
        self._run("pg_ctl", "start", *waiting, "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash, from which the server recovers when it starts."""
        self._run("pg_ctl", "stop", "-w", "-t", str(_SECONDS), "-m", mode)

    def _run(self, name: str, *arguments: str) -> None:
        prefix = ["setpriv", f"--reuid={_OTHER_USER}", "--regid=nogroup", "--clear-groups"]
        command = [str(self.bin / name), "-D", f"{self.folder}/data", *arguments]
        subprocess.run(
            [*(prefix if os.getuid() == 0 else []), *command],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            timeout=2 * _SECONDS,
        )
