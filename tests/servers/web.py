"""nginx, which counts requests and honours conditional ones."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.servers.programs import free_port, program, running

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
    location = /forbidden {{ return 403; }}
    location = /settled {{ access_log off; return 204; }}
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
        """Lines of the access log of all requests that were answered.

        nginx writes the line behind the answer, but before it answers the next request.
        """
        with urlopen(self.url("settled")):
            pass
        log = self.folder / "access.log"
        return log.read_text().splitlines() if log.exists() else []


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    """A web server that serves `folder/www` and logs to `folder/access.log`."""
    executable = program("nginx")
    (folder / "www").mkdir(parents=True)
    folder.chmod(0o755)
    port = free_port()
    config = folder / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(user + _CONFIG.format(folder=folder, port=port))
    command = [executable, "-c", str(config), "-e", str(folder / "error.log")]
    with running(command, port, folder / "start.log"):
        yield Server(folder, port)
