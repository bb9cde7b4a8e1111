"""An OpenSSH server of the test's own, which knows one key and serves files of the machine."""

import contextlib
import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.servers.programs import free_port, program, running


@dataclass(frozen=True)
class Sftp:
    """`home` is the home of who asks, with its key and known hosts."""

    port: int
    files: Path
    home: Path

    def url(self, path: str = "", *, user: str | None = None) -> str:
        return f"sftp://{user or getpass.getuser()}@localhost:{self.port}{path or self.files}"


@contextlib.contextmanager
def sftp_server(folder: Path) -> Iterator[Sftp]:
    """Start it, and end it."""
    sshd = program("sshd")
    files, home, port = folder / "files", folder / "home", free_port()
    files.mkdir()
    (home / ".ssh").mkdir(parents=True)
    key, host_key = home / ".ssh" / "id_ed25519", folder / "host_key"
    for each in (key, host_key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", each], check=True)
    shutil.copy(f"{key}.pub", folder / "authorized")
    public = " ".join(Path(f"{host_key}.pub").read_text().split()[:2])
    (home / ".ssh" / "known_hosts").write_text(f"[localhost]:{port} {public}\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    config = folder / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
        "Subsystem sftp internal-sftp\n"
    )
    log = folder / "log"
    with running([sshd, "-D", "-e", "-f", str(config)], port, log):
        yield Sftp(port, files, home)
