"""Every kind of fetch step, from a real server into a real chain, however runs end.

A source that did not change is not fetched again and writes nothing; one that changed brings
exactly its new records; a run that fails half way leaves the chain as it was, and the next one
brings what is missing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import container, ftp, http
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.exchange.tables.kartothek.tables import pin, table_at, touched
from tests.servers import nginx
from tests.servers.broker import PASSWORD, USER, mosquitto
from tests.servers.containers import IMAGE, machine_with, podman_with_image
from tests.servers.files import ftp_server
from tests.servers.objects import BUCKET, gs_endpoint, s3_endpoint

SECRET = "ganz-geheim-4242"
Rows = list[int]


@dataclass
class Source:
    """`fetch` is its YAML, `put` makes it say something new, `transfers` counts what it gave."""

    fetch: dict[str, Any]
    put: Callable[[Rows], None]
    transfers: Callable[[], int]
    read: str = "Csv"
    ingest: dict[str, Any] | None = None


_moments = itertools.count(10**9)


def write(file: Path, ids: Rows) -> None:
    """A new version, of a new second: web servers tell versions apart by that."""
    file.write_text(as_csv(ids))
    now = next(_moments)
    os.utime(file, (now, now))


def as_csv(ids: Rows) -> str:
    return "event_time,id,value\n" + "".join(f"2024-01-01 00:00:00,{n},{n}\n" for n in ids)


@contextlib.contextmanager
def url_of_a_file(folder: Path, root: Path) -> Iterator[Source]:
    fetch = {"kind": "Url", "url": "file:page.csv"}
    yield Source(fetch, lambda ids: write(root / "page.csv", ids), lambda: 0)


@contextlib.contextmanager
def files_of_a_pattern(folder: Path, root: Path) -> Iterator[Source]:
    def put(ids: Rows) -> None:
        (root / "in").mkdir(exist_ok=True)
        (root / "in" / f"{ids[0]:03}.csv").write_text(as_csv(ids))

    yield Source({"kind": "FilesGlob", "path": "in/*.csv"}, put, lambda: 0)


@contextlib.contextmanager
def url_of_a_web_server(folder: Path, root: Path) -> Iterator[Source]:
    with nginx(folder / "web") as server:
        headers = [{"name": "X-Token", "value": "${{ env.ODFBUILD_TEST_SECRET }}"}]
        yield Source(
            {"kind": "Url", "url": server.url("page.csv"), "headers": headers},
            lambda ids: write(server.www / "page.csv", ids),
            lambda: sum(line.startswith("200 ") for line in server.requests()),
        )
        assert all(f'"{SECRET}"' in line for line in server.requests())


@contextlib.contextmanager
def url_of_an_ftp_server(folder: Path, root: Path) -> Iterator[Source]:
    with ftp_server(folder / "ftp") as server:
        yield Source(
            {"kind": "Url", "url": server.url("page.csv", password="${{ env.ODFBUILD_TEST_FTP }}")},
            lambda ids: write(server.folder / "page.csv", ids),
            lambda: sum(line.startswith("RETR") for line in server.commands),
        )


@contextlib.contextmanager
def url_of_an_object(folder: Path, root: Path) -> Iterator[Source]:
    with s3_endpoint() as store:
        yield Source(
            {"kind": "Url", "url": f"s3://{BUCKET}/page.csv"},
            lambda ids: store.put("page.csv", as_csv(ids).encode()),
            lambda: 0,
        )


@contextlib.contextmanager
def url_of_an_object_of_google(folder: Path, root: Path) -> Iterator[Source]:
    with gs_endpoint() as put:
        yield Source(
            {"kind": "Url", "url": f"gs://{BUCKET}/page.csv"},
            lambda ids: put("page.csv", as_csv(ids).encode()),
            lambda: 0,
        )


@contextlib.contextmanager
def container_that_prints(folder: Path, root: Path) -> Iterator[Source]:
    script = (
        "read v < /data/version; "
        'if [ "$v" != "$ODF_ETAG" ]; then echo x >> /data/transfers; '
        'while read -r line; do echo "$line"; done < /data/page.csv; fi; '
        'printf %s "$v" > $ODF_NEW_ETAG_PATH'
    )
    data = folder / "data"
    data.mkdir()

    def put(ids: Rows) -> None:
        (data / "page.csv").write_text(as_csv(ids))
        (data / "version").write_text(f"v{ids[0]}\n")

    with podman_with_image() as podman, pytest.MonkeyPatch.context() as patch:
        machine = machine_with(folder, podman, f"--volume={data}:/data:rw")
        patch.setenv("ODFBUILD_CONFIG", str(machine))
        yield Source(
            {"kind": "Container", "image": IMAGE, "command": ["sh", "-c"], "args": [script]},
            put,
            lambda: len((data / "transfers").read_text().splitlines()),
        )


@contextlib.contextmanager
def messages_of_a_broker(folder: Path, root: Path) -> Iterator[Source]:
    with mosquitto(folder / "broker") as broker:

        def put(ids: Rows) -> None:
            rows = [{"event_time": "2024-01-01 00:00:00", "id": n, "value": n} for n in ids]
            broker.publish("rows", *map(json.dumps, rows), retain=False)

        fetch = {
            "kind": "Mqtt",
            "host": "127.0.0.1",
            "port": broker.port,
            "username": USER,
            "password": "${{ env.ODFBUILD_TEST_MQTT }}",
            "topics": [{"path": "rows", "qos": "ExactlyOnce"}],
        }
        yield Source(fetch, put, lambda: 0, read="NdJson", ingest={"mqtt": {"idleSeconds": 0.3}})


@contextlib.contextmanager
def table_of_kartothek(folder: Path, root: Path) -> Iterator[Source]:
    columns = pa.schema(
        [("event_time", pa.timestamp("ms", "UTC")), ("id", pa.int64()), ("value", pa.int64())]
    )
    moment = datetime(2024, 1, 1, tzinfo=UTC)

    def put(ids: Rows) -> None:
        table = table_at(folder, schema=columns, name="page", indices=("id",))
        rows = [{"event_time": moment, "id": n, "value": n} for n in ids]
        table.commit(table.read_state(), pin(ids[0]), None, touched(rows, (), columns))

    where = quote(json.dumps([[["id", ">", 0]]]))
    url = f"kartothek+file://{folder}?where={where}#page"
    yield Source({"kind": "Url", "url": url}, put, lambda: 0, read="Parquet")


KINDS = [
    url_of_a_file,
    files_of_a_pattern,
    url_of_a_web_server,
    url_of_an_ftp_server,
    url_of_an_object,
    url_of_an_object_of_google,
    container_that_prints,
    messages_of_a_broker,
    table_of_kartothek,
]


class Failing(PlainEngine):
    """Fails while `broken`, as when the data cannot be read."""

    broken = False

    def ingest(self, task: Any) -> Any:
        if self.broken:
            raise IngestError("the data is odd", code="E0420", help="wait")
        return super().ingest(task)


@pytest.fixture
def engine(monkeypatch):
    made = Failing()
    share(made, monkeypatch)
    monkeypatch.setattr(http, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(ftp, "_FIRST_WAIT", 0.01)
    monkeypatch.setenv("ODFBUILD_TEST_SECRET", SECRET)
    monkeypatch.setenv("ODFBUILD_TEST_FTP", "s3cret-pass")
    monkeypatch.setenv("ODFBUILD_TEST_MQTT", PASSWORD)
    return made


def define(root: Path, source: Source) -> Tiny:
    (root / "datasets").mkdir(parents=True, exist_ok=True)
    project: dict[str, Any] = {"name": "tiny", "datasets": "datasets", "state": "chains"}
    if source.ingest:
        project["ingest"] = source.ingest
    document = {"kind": "Project", "version": 1, "content": project}
    (root / "odfbuild.yaml").write_text(json.dumps(document))
    columns = ["event_time TIMESTAMP", "id BIGINT", "value BIGINT"]
    read: dict[str, Any] = {"kind": source.read, "schema": columns}
    if source.read == "Csv":
        read["header"] = True
    polling = {
        "kind": "SetPollingSource",
        "fetch": source.fetch,
        "read": read,
        "merge": {"kind": "Append"},
    }
    content = {"name": "root", "kind": "Root", "metadata": [polling]}
    text = json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content})
    (root / "datasets" / "root.yaml").write_text(text)
    return Tiny(root)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_records_of_a_source_come_once_however_runs_end(
    tmp_path, monkeypatch, capsys, engine, kind
):
    root = tmp_path / "p"
    root.mkdir()
    with kind(tmp_path, root) as source:
        tiny = define(root, source)
        program = Program(root, monkeypatch, capsys)
        # A broker keeps messages for those only who were there before.
        if kind is not messages_of_a_broker:
            source.put([1, 2])
        program.apply()
        if kind is messages_of_a_broker:
            source.put([1, 2])
            program.apply()
        assert tiny.ids("root") == [1, 2]

        before, transfers = tiny.state(), source.transfers()
        assert program("plan").code == 0
        assert source.transfers() == transfers
        program.apply()
        assert tiny.state() == before
        assert source.transfers() == transfers

        source.put([3, 4])
        engine.broken = True
        failed = program("apply", "-y")
        assert failed.code == 1
        assert "the data is odd" in failed.out + failed.err
        assert tiny.state() == before
        engine.broken = False
        program.apply()
        assert tiny.ids("root") == [1, 2, 3, 4]
        # A download is kept for the next run; a program is run again.
        again = 2 if kind is container_that_prints else 1
        assert source.transfers() <= transfers + again

        after = tiny.state()
        program.apply()
        assert tiny.state() == after
        assert program.ok("verify").code == 0

    kept = [file for file in root.rglob("*") if file.is_file()]
    for secret in (SECRET, PASSWORD, "s3cret-pass"):
        assert not [file for file in kept if secret.encode() in file.read_bytes()]


def test_a_state_survives_the_renaming_of_folders(tmp_path, monkeypatch, capsys, engine):
    root = tmp_path / "p"
    (root / "in" / "2024").mkdir(parents=True)
    source = Source({"kind": "FilesGlob", "path": "in/**/*.csv"}, lambda ids: None, lambda: 0)
    tiny = define(root, source)
    program = Program(root, monkeypatch, capsys)
    for number in (1, 2, 3):
        (root / "in" / "2024" / f"{number}.csv").write_text(as_csv([number]))
    program.apply()
    assert tiny.ids("root") == [1, 2, 3]
    before = tiny.state()
    (root / "in" / "2024").rename(root / "in" / "last year")
    program.apply()
    assert tiny.state() == before
    (root / "in" / "4.csv").write_text(as_csv([4]))
    program.apply()
    assert tiny.ids("root") == [1, 2, 3, 4]


def test_files_before_one_that_cannot_be_read_are_kept(tmp_path, monkeypatch, capsys, engine):
    root = tmp_path / "p"
    (root / "in").mkdir(parents=True)
    source = Source({"kind": "FilesGlob", "path": "in/*.csv"}, lambda ids: None, lambda: 0)
    tiny = define(root, source)
    program = Program(root, monkeypatch, capsys)
    for number in (1, 2, 3):
        (root / "in" / f"{number}.csv").write_text(as_csv([number]))
    good, calls = engine.ingest, []

    def second_fails(task: Any) -> Any:
        calls.append(task)
        if len(calls) == 2:
            raise IngestError("the data is odd", code="E0420", help="wait")
        return good(task)

    monkeypatch.setattr(engine, "ingest", second_fails)
    assert program("apply", "-y").code == 4
    assert tiny.ids("root") == [1]
    program.apply()
    assert tiny.ids("root") == [1, 2, 3]


def test_a_source_that_gives_nothing_to_compare_with_is_read_again_only_when_told(
    tmp_path, monkeypatch, capsys, engine
):
    from tests.servers.faulty import faulty_server, response

    root = tmp_path / "p"
    root.mkdir()
    with faulty_server(response(as_csv([1]).encode())) as server:
        source = Source({"kind": "Url", "url": server.url}, lambda ids: None, lambda: 0)
        tiny = define(root, source)
        program = Program(root, monkeypatch, capsys)
        program.apply()
        (unchanged,) = program.ok("plan", "--json").data["datasets"]
        assert "--fetch-uncacheable" in json.dumps(unchanged)
        program.apply()
        assert len(server.requests) == 1
        program.ok("apply", "-y", "--fetch-uncacheable")
        assert len(server.requests) == 2
        assert tiny.ids("root") == [1, 1]


def test_what_is_cached_forever_is_not_asked_for_again(tmp_path, monkeypatch, capsys, engine):
    root = tmp_path / "p"
    root.mkdir()
    with nginx(tmp_path / "web") as server:
        page = server.www / "page.csv"
        write(page, [1])
        fetch = {"kind": "Url", "url": server.url("page.csv"), "cache": {"kind": "Forever"}}
        tiny = define(root, Source(fetch, lambda ids: None, lambda: 0))
        program = Program(root, monkeypatch, capsys)
        program.apply()
        write(page, [1, 2, 3])
        program.apply()
        assert len(server.requests()) == 1
        # Another address is another source.
        define(root, Source({**fetch, "url": server.url("data/../page.csv?2")}, print, lambda: 0))
        program.apply()
        assert tiny.ids("root") == [1, 1, 2, 3]


def test_a_secret_shows_nowhere_when_a_source_fails(tmp_path, monkeypatch, capsys, engine):
    from tests.servers.faulty import faulty_server, response

    root = tmp_path / "p"
    root.mkdir()
    monkeypatch.setenv("ODFBUILD_TEST_SECRET", SECRET)
    echo = response(b"", status=f"403 No {SECRET}")
    with faulty_server(echo) as server:
        url = f"{server.url}?key=${{{{ env.ODFBUILD_TEST_SECRET || 'none' }}}}"
        tiny = define(root, Source({"kind": "Url", "url": url}, lambda ids: None, lambda: 0))
        program = Program(root, monkeypatch, capsys)
        for form in ([], ["--json"]):
            failed = program("apply", "-y", *form)
            assert failed.code == 1
            assert "403 No ***" in failed.out + failed.err
            assert SECRET not in failed.out + failed.err
        assert SECRET in server.requests[0]
        planned = program("plan", "--json")
        assert "env.ODFBUILD_TEST_SECRET" in (root / "datasets" / "root.yaml").read_text()
        assert SECRET not in planned.out + planned.err
        assert "root" not in tiny.workspace().projections()
    kept = [file for file in root.rglob("*") if file.is_file()]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes()]


def test_a_machine_without_a_container_runtime_leaves_the_chain_alone(
    tmp_path, monkeypatch, capsys, engine
):
    root = tmp_path / "p"
    root.mkdir()
    monkeypatch.setattr(container, "_RUNTIMES", ("no-such-runtime",))
    source = Source({"kind": "Container", "image": "x"}, lambda ids: None, lambda: 0)
    tiny = define(root, source)
    failed = Program(root, monkeypatch, capsys)("apply", "-y")
    assert failed.code == 1
    assert "ODFBUILD_CONTAINER_RUNTIME" in failed.out + failed.err
    assert "root" not in tiny.workspace().projections()


NETWORK = [
    {"kind": "Url", "url": "https://data.example.org/x.csv?key=${{ env.ODFBUILD_TEST_ABSENT }}"},
    {"kind": "Url", "url": "ftp://data.example.org/x.csv"},
    {"kind": "Url", "url": "s3://bucket/x.csv"},
    {"kind": "Url", "url": "${{ env.ODFBUILD_TEST_ABSENT }}"},
    {"kind": "Container", "image": "example.org/image"},
    {"kind": "Mqtt", "host": "example.org", "port": 1883, "topics": [{"path": "x"}]},
    {"kind": "EthereumLogs", "chainId": 1},
]


@pytest.mark.parametrize("fetch", NETWORK, ids=lambda f: f"{f['kind']} {f.get('url', '')[:8]}")
def test_a_plan_neither_uses_the_network_nor_runs_anything(
    tmp_path, monkeypatch, capsys, engine, fetch
):
    read = "Parquet" if fetch["kind"] == "EthereumLogs" else "NdJson"
    define(tmp_path, Source(fetch, lambda ids: None, lambda: 0, read=read))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("this is not for plans")

    for holder, name in (
        (socket.socket, "connect"),
        (socket, "create_connection"),
        (socket, "getaddrinfo"),
        (container, "run_to_file"),
    ):
        monkeypatch.setattr(holder, name, refuse)
    (planned,) = Program(tmp_path, monkeypatch, capsys).ok("plan", "--json").data["datasets"]
    (reason,) = [r for r in planned["reasons"] if r["code"] == "source_not_checked"]
    assert reason["message"].endswith("at apply")
