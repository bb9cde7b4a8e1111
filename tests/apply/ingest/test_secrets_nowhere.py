"""Secrets of the environment are used and shown nowhere: not in any file, not on any stream.

Real servers on loopback, real Spark with event logs, sources that succeed and that fail in ways
which repeat what they were told.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest

from tests.servers.containers import IMAGE, Podman, machine_with, podman_with_image
from tests.servers.objects import BUCKET, s3_endpoint
from tests.servers.programs import free_port

pytestmark = pytest.mark.spark

SECRETS = {
    "HEADER_TOKEN": "header-geheim/4711+a",
    "QUERY_KEY": "query geheim&4712=b",
    "USER_PASSWORD": "password-geheim:4713",
    "CONTAINER_TOKEN": "container-geheim-4714",
    "BROKER_PASSWORD": "broker-geheim-4715",
    "AWS_SECRET_ACCESS_KEY": "aws-geheim-4716/x+y",
    "AWS_SESSION_TOKEN": "session-geheim-4717",
    "ODFBUILD_TEST_UNUSED": "unused-geheim-4718",
    "LOGIN_TOKEN": "zq-4719/rest-of-zq-4720",
    "LOGIN_URL": "ftp://me:zq-4721/rest-of-zq-4722@127.0.0.1:1/x",
}
PIECES = {
    "LOGIN_TOKEN": ("zq-4719", "zq-4720"),
    "LOGIN_URL": ("zq-4721", "zq-4722"),
}
"""Parts of secrets that end at a slash, where libraries think that something ends."""
CSV = b"event_time,id\n2024-01-01 00:00:00,1\n2024-01-02 00:00:00,2\n"
_COMMAND = [sys.executable, "-c", "from odfbuild.cli.main import main; main()"]


class Echo(BaseHTTPRequestHandler):
    """Serves records to whoever has the secrets, and repeats them elsewhere."""

    def do_GET(self) -> None:
        told = f"{self.path}\n{self.headers}"
        self.server.told.append(told)  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        if path == "/data.csv":
            self._answer(200, CSV)
        elif path == "/bad.csv":
            body = b"event_time,id\n2024-01-01 00:00:00," + self._spelled() + b"\n"
            self._answer(200, body)
        elif path == "/away":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:1/{self.path}")
            self.end_headers()
        else:
            self._answer(403, f"you sent {told}".encode())

    def _spelled(self) -> bytes:
        return str(self.headers.get("X-Token", "")).encode()

    def _answer(self, status: int, body: bytes) -> None:
        why = f"because of {self.path} {self.headers.get('Authorization')}"
        self.send_response(status, why if status != 200 else None)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def url_source(url: str, header: bool = True) -> dict[str, Any]:
    token = {"name": "X-Token", "value": "${{ env.HEADER_TOKEN }}"}
    return {"kind": "Url", "url": url, **({"headers": [token]} if header else {})}


def container(script: str) -> dict[str, Any]:
    env = [{"name": "TOKEN", "value": "${{ env.CONTAINER_TOKEN }}"}]
    command = {"command": ["/bin/sh", "-c"], "args": [script]}
    return {"kind": "Container", "image": IMAGE, "env": env, **command}


def sources(server: str) -> dict[str, dict[str, Any]]:
    """Sources by name; those that begin with `ok` have records, the others fail."""
    query = "?key=${{ env.QUERY_KEY }}"
    address = server.removeprefix("http://")
    lines = CSV.decode().splitlines()
    return {
        "ok.header": url_source(f"{server}/data.csv"),
        "ok.query": url_source(f"{server}/data.csv{query}"),
        "ok.s3": url_source(f"s3://{BUCKET}/data.csv", header=False),
        "ok.container": container("; ".join(f'echo "{line}"' for line in lines)),
        "no.echo": url_source(f"{server}/echo{query}"),
        "no.record": url_source(f"{server}/bad.csv{query}"),
        "no.away": url_source(f"{server}/away{query}"),
        "no.user": url_source(f"http://me:${{{{ env.USER_PASSWORD }}}}@{address}/echo"),
        "no.login": url_source("ftp://me:${{ env.LOGIN_TOKEN }}@127.0.0.1:1/x", header=False),
        "no.whole": url_source("${{ env.LOGIN_URL }}", header=False),
        "no.host": url_source(f"http://127.0.0.1:1/{query}"),
        "no.s3": url_source(f"s3://{BUCKET}/nothing/${{{{ env.QUERY_KEY }}}}.csv", header=False),
        "no.container": container('echo "$TOKEN" >&2; echo "not with $TOKEN"; exit 3'),
        "no.mqtt": {
            "kind": "Mqtt",
            "host": "127.0.0.1",
            "port": free_port(),
            "username": "me",
            "password": "${{ env.BROKER_PASSWORD }}",
            "topics": [{"path": "t"}],
        },
    }


@dataclass
class Done:
    """What odfbuild said and wrote."""

    root: Path
    spark: Path
    said: dict[tuple[str, ...], str] = field(default_factory=dict)
    out: dict[tuple[str, ...], str] = field(default_factory=dict)
    codes: dict[tuple[str, ...], int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with podman_with_image() as made:
        yield made


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, podman: Podman) -> Iterator[Done]:
    base = tmp_path_factory.mktemp("secrets")
    root, spark = base / "project", base / "spark"
    for folder in (root / "datasets", spark / "events", base / "tmp"):
        folder.mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.told = []  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    with s3_endpoint() as objects, pytest.MonkeyPatch.context() as patch:
        objects.put("data.csv", CSV)
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        patch.setenv("TMPDIR", str(base / "tmp"))
        logged = {"enabled": "true", "dir": f"file://{spark}/events", "compress": "false"}
        config = {
            "kind": "Project",
            "version": 1,
            "content": {
                "name": "secrets",
            },
        }
        conf = {f"spark.eventLog.{key}": value for key, value in logged.items()}
        # The sandbox would keep the logs from being written there.
        machine = machine_with(base, podman, sandbox="off", conf=conf)
        patch.setenv("ODFBUILD_CONFIG", str(machine))
        (root / "odfbuild.yaml").write_text(json.dumps(config))
        for name, fetch in sources(f"http://127.0.0.1:{server.server_port}").items():
            (root / "datasets" / f"{name}.yaml").write_text(definition(name, fetch))
        found = Done(root, spark)
        for arguments in (
            ("validate",),
            ("plan", "-o", "plan.json"),
            ("plan", "--md"),
            ("plan", "--format", "html"),
            ("apply", "plan.json", "-y", "-vv", "--log-format", "json", "--json-lines"),
            ("apply", "-y", "-vv", "--json"),
            ("status", "--json"),
            ("explain", "no.echo", "--since", "last"),
            ("drift", "--deep", "--json"),
            ("log", "ok.query", "--json"),
            ("log", "ok.query", "--vintage"),
            ("render",),
            ("import", "ok.header"),
        ):
            process = subprocess.run(
                [*_COMMAND, *arguments],
                cwd=root,
                env={**os.environ, "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
            found.said[arguments] = process.stdout + process.stderr
            found.out[arguments] = process.stdout
            found.codes[arguments] = process.returncode
        found.told = list(server.told)  # type: ignore[attr-defined]
        yield found
    server.shutdown()


def definition(name: str, fetch: dict[str, Any]) -> str:
    source = {
        "kind": "SetPollingSource",
        "fetch": fetch,
        "read": {"kind": "Csv", "header": True, "schema": ["event_time TIMESTAMP", "id BIGINT"]},
        "merge": {"kind": "Append"},
    }
    content = {"name": name, "kind": "Root", "metadata": [source]}
    return json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content})


def spellings(secret: str) -> set[bytes]:
    """How a secret may be written down: as it is, in a URL, in JSON, for basic authentication."""
    texts = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}
    texts |= {quote(secret, safe=plain) for plain in ("/", ":/&=+", ":/?&=+@;,")}
    encoded = {base64.b64encode(text.encode()) for text in (secret, f"me:{secret}")}
    return {text.encode() for text in texts} | encoded


def shown_in(data: bytes) -> set[str]:
    """Names of the secrets that some bytes show."""
    return {
        name
        for name, secret in SECRETS.items()
        if any(spelling in data for spelling in spellings(secret))
        or any(piece.encode() in data for piece in PIECES.get(name, ()))
    }


def test_the_sources_were_asked_with_their_secrets(done: Done) -> None:
    shown = shown_in("\n".join(done.told).encode())
    assert {"HEADER_TOKEN", "QUERY_KEY", "USER_PASSWORD"} <= shown


def test_those_that_can_succeed_did_and_the_others_failed(done: Done) -> None:
    found = json.loads(done.said["status", "--json"])
    failed = {each["name"] for each in found["failed"]}
    every = {file.stem for file in (done.root / "datasets").iterdir()}
    assert failed == {name for name in every if name.startswith("no.")}
    assert {path.name for path in (done.root / "chains").glob("[no]*")} == every - failed
    assert (
        done.codes["apply", "plan.json", "-y", "-vv", "--log-format", "json", "--json-lines"] == 4
    )


def test_each_failure_has_the_code_of_its_cause(done: Done) -> None:
    found = json.loads(done.out["apply", "-y", "-vv", "--json"])
    codes = {each["name"]: each["error"]["code"] for each in found["datasets"] if each["error"]}
    assert codes == {
        "no.echo": "E0405",
        "no.s3": "E0405",
        "no.user": "E0405",
        "no.away": "E0406",
        "no.host": "E0406",
        "no.login": "E0406",
        "no.whole": "E0407",
        "no.container": "E0415",
        "no.mqtt": "E0416",
        "no.record": "E0421",
    }


def test_no_secret_is_said(done: Done) -> None:
    found = {arguments: shown_in(text.encode()) for arguments, text in done.said.items()}
    assert {arguments: names for arguments, names in found.items() if names} == {}


def test_no_secret_is_in_any_file(done: Done) -> None:
    files = [file for file in done.root.parent.rglob("*") if file.is_file()]
    kinds = {file.relative_to(done.root).parts[0] for file in files if done.root in file.parents}
    assert {"chains", ".odfbuild", "plan.json"} <= kinds
    assert list((done.root / ".odfbuild" / "runs").glob("*/run_results.json"))
    found = {file: names for file in files if (names := shown_in(file.read_bytes()))}
    # What a source sends as data is data: the bad record is kept until it can be read.
    sent = {
        file for file in found if "downloads" in file.parts and b"event_time" in file.read_bytes()
    }
    assert {file: names for file, names in found.items() if file not in sent} == {}
    assert len(sent) == 1


def test_spark_wrote_event_logs_that_were_searched(done: Done) -> None:
    logs = [file for file in (done.spark / "events").rglob("*") if file.is_file()]
    assert logs and any(b"SparkListener" in file.read_bytes() for file in logs)


def test_a_secret_that_is_written_down_would_be_found(done: Done) -> None:
    for name, secret in SECRETS.items():
        for spelling in spellings(secret):
            assert name in shown_in(b"..." + spelling + b"...")
