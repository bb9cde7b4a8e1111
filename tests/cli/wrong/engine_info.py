"""Sources that do not answer, and machines that lack something."""

from __future__ import annotations

import gzip
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from odfbuild.store import lock_holders as holders
from odfbuild.store.claims import Claim
from tests.apply.tiny import Tiny
from tests.cli.wrong.projects import polled
from tests.cli.wrong.spoil import DERIVED, Case, Spoil, both, config, put, swap

_SECRET = "etag-geheim"


class _Tagging(BaseHTTPRequestHandler):
    """Gives what it was told in confidence as the state of its source."""

    def do_GET(self) -> None:
        body = b"event_time,id\n2024-01-01 00:00:00,1\n"
        self.send_response(200)
        self.send_header("ETag", f'"{self.headers["X-Token"]}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def tagging(tiny: Tiny) -> None:
    """A source whose state repeats a secret; the server ends with this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tagging)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    token = "{name: X-Token, value: '${{ env.SECRET }}'}"
    polled(f"{{kind: Url, url: '{url}', headers: [{token}]}}")(tiny)


def failing_at(module: str) -> Spoil:
    """A Python in which that module cannot be imported, for `PYTHONPATH={root}/broken`."""
    path = f"broken/{module.replace('.', '/')}/__init__.py"
    return put(path, f"raise ImportError('no module {module}')\n")


def defect(tiny: Tiny) -> None:
    """A fault inside of odfbuild: one of its modules raises what nobody foresaw."""
    put(
        "broken/sitecustomize.py",
        "import odfbuild.odf.timestamp as module\n"
        "def fault(*_): raise RuntimeError('a fault')\n"
        "module.Timestamp.now = staticmethod(fault)\n",
    )(tiny)


def java_that_ends(tiny: Tiny) -> None:
    """A Java that tells a version, and does nothing."""
    put("java/bin/java", "#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\nexit 3\n")(tiny)
    (tiny.root / "java/bin/java").chmod(0o755)


def full_disk(tiny: Tiny) -> None:
    """A process that may write no more than some bytes to a file, as on a disk that is full."""
    put(
        "broken/sitecustomize.py",
        "import os, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "size = int(os.environ['ROOM'])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n",
    )(tiny)


def at_work_here(tiny: Tiny) -> None:
    """This process works on a dataset, until it ends."""
    _CLAIMS.append(tiny.workspace().claim(["root"]))


def at_work_elsewhere(tiny: Tiny) -> None:
    """A process that says to be of another machine works on a dataset."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holders, "this_host", lambda: "far.away")
        at_work_here(tiny)


_CLAIMS: list[Claim] = []
BROKEN_PYTHON = {"PYTHONPATH": "{root}/broken"}
FALSE = {"ODFBUILD_CONTAINER_RUNTIME": "/bin/false"}

FETCHES = (
    Case(
        "E0400",
        "apply -y -s pushed",
        both(
            full_disk,
            put("data/1.csv.gz", gzip.compress(b"n\n" * 100_000)),
            polled(
                "{kind: FilesGlob, path: data/*.gz, order: ByName}\n"
                "      prepare: [{kind: Decompress, format: Gzip}]"
            ),
        ),
        env={**BROKEN_PYTHON, "ROOM": "100000"},
    ),
    Case(
        "E0405",
        "apply -y",
        polled("{kind: Url, url: 'http://127.0.0.1:1/', headers: [{name: a b, value: x}]}"),
    ),
    Case("E0406", "apply -y", polled("{kind: Url, url: 'http://127.0.0.1:1/'}")),
    Case("E0413", "apply -y", tagging, env={"SECRET": _SECRET}),
    Case("E0415", "apply -y", polled("{kind: Container, image: x}"), env=FALSE),
    Case("E0416", "apply -y", polled("{kind: Mqtt, host: 127.0.0.1, port: 1, topics: []}")),
    Case("E0436", "new files x data/2.json", put("data/2.json", '{"a": 1}')),
    Case("E0580", "sql -f q.sql", put("q.sql", "SELECT 1"), fresh=True),
    Case("E0513", "plan", swap(DERIVED, "engine: spark", "engine: datafusion"), fresh=True),
    Case(
        "E0519",
        "plan",
        both(
            config("  engines: {flink: spark}\n"),
            swap(DERIVED, "engine: spark", "engine: flink"),
            swap(DERIVED, "value * 10 AS value", "ROWTIME(value) AS value"),
        ),
        fresh=True,
    ),
)

_TAKEN = socket.create_server(("127.0.0.1", 0))

MACHINES = (
    Case("E0171", "plan", put("m.yaml", "kind: Machine"), env={"ODFBUILD_CONFIG": "{root}/m.yaml"}),
    Case("E0348", f"docs serve --port {_TAKEN.getsockname()[1]}"),
    Case("E1051", "serve --host 0.0.0.0 --port 0"),
    Case("E1052", "serve --port 0", env={"ODFBUILD_SERVE_TOKEN": "guess me"}),
    Case("E1053", "serve --port 0 --external-address ftp://data.example.org"),
    Case(
        "E0112",
        "fmt",
        both(full_disk, swap(DERIVED, "version: 1", "version:   1")),
        env={**BROKEN_PYTHON, "ROOM": "0"},
    ),
    Case("E0347", "lock break root -y", at_work_elsewhere, exit=9),
    Case("E0702", "apply -y -s root --lock-timeout 0", at_work_here, fresh=True, exit=9),
    Case("E0544", "apply -y", fresh=True, env={"ODFBUILD_STEP_SECONDS": "soon"}),
    Case("E0901", "apply -y", fresh=True),
    Case(
        "E0902", "apply -y", java_that_ends, fresh=True, env={"ODFBUILD_JAVA_HOME": "{root}/java"}
    ),
    Case(
        "E0903",
        "apply -y",
        both(
            failing_at("paho"),
            polled("{kind: Mqtt, host: 127.0.0.1, port: 1, topics: [{path: t}]}"),
        ),
        env=BROKEN_PYTHON,
    ),
    Case("E0905", "apply -y", fresh=True, env={"ODFBUILD_SANDBOX": "maybe"}),
    Case(
        "E0906",
        "apply -y",
        fresh=True,
        env={"ODFBUILD_SANDBOX": "required", "ODFBUILD_SPARK_MASTER": "spark://127.0.0.1:1"},
    ),
    Case("E0907", "apply -y", fresh=True, env={"ODFBUILD_SPARK_MASTER": "spark://127.0.0.1:1"}),
    Case("E0999", "apply -y", defect, fresh=True, env=BROKEN_PYTHON),
)
