"""Real servers on the loopback interface, for tests of fetching."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_CONFIG = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  log_format short '$status $request_method $uri '
    '"$http_if_none_match" "$http_if_modified_since" "$http_x_token"';
  access_log {folder}/access.log short;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/www;
    location /plain/ {{ alias {folder}/www/; etag off; }}
    location = /moved {{ return 302 /data.csv; }}
    location = /loop {{ return 302 /loop; }}
    location = /broken {{ return 503; }}
    location = /away {{ return 302 http://localhost:{port}/data.csv; }}
  }}
}}
"""


@dataclass(frozen=True)
class Server:
    folder: Path
    port: int

    @property
    def www(self) -> Path:
        return self.folder / "www"

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def requests(self) -> list[str]:
        """Lines of the access log so far."""
        log = self.folder / "access.log"
        return log.read_text().splitlines() if log.exists() else []


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    """A web server that serves `folder/www` and logs to `folder/access.log`."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        if os.getuid() == 0:
            pytest.fail("nginx is missing: run `apt-get install nginx-light`")
        pytest.skip("nginx is not installed; `apt-get install nginx-light` as root installs it")
    (folder / "www").mkdir(parents=True)
    folder.chmod(0o755)
    port = _free_port()
    config = folder / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(user + _CONFIG.format(folder=folder, port=port))
    process = subprocess.Popen(
        [program, "-c", str(config), "-e", str(folder / "error.log")], stderr=subprocess.DEVNULL
    )
    try:
        _wait(port, process)
        yield Server(folder, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            pytest.fail(f"nginx ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    pytest.fail("nginx did not begin to listen")
