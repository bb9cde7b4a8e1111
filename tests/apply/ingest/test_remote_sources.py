"""SFTP, spreadsheets and APIs in the chain: what fails commits nothing, what comes next goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.ingest.fetch import http as http_step
from odfbuild.ingest.fetch import sftp as sftp_step
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.ingest.workbooks import xlsx
from tests.servers.api import Answer, Asked, api_server
from tests.servers.sftp import sftp_server

pytestmark = pytest.mark.spark


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    for each in (http_step, sftp_step):
        monkeypatch.setattr(each, "_FIRST_WAIT", 0.01)
    return Program(Tiny.fresh(tmp_path / "project").root, monkeypatch, capsys)


def define(program: Program, name: str, source: dict[str, Any]) -> None:
    event = {"kind": "SetPollingSource", **source}
    content = {"name": name, "kind": "Root", "metadata": [event]}
    text = json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content})
    (program.root / "datasets" / f"{name}.yaml").write_text(text)


def records(program: Program, name: str) -> list[list[Any]]:
    """Columns of the source, of each record in its order."""
    found = program.ok("tail", name, "-n", "100", "--json").data
    rows = found["records"] if isinstance(found, dict) else found
    return [[each["id"], each["price"]] for each in rows]


def test_spreadsheets_of_a_server_are_read_once_and_a_broken_one_loses_nothing(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sftp").mkdir()
    with sftp_server(tmp_path / "sftp") as server:
        monkeypatch.setenv("HOME", str(server.home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        define(program, "prices", {
            "fetch": {"kind": "FilesGlob", "path": server.url(f"{server.files}/*.xlsx")},
            "prepare": [{"kind": "Pipe", "command": ["odfbuild", "convert", "spreadsheet"]}],
            "read": {"kind": "NdJson", "schema": ["id BIGINT", "price DECIMAL(10, 2)"]},
            "merge": {"kind": "Append"},
        })  # fmt: skip

        def put(name: str, *rows: tuple[int, object]) -> None:
            (server.files / name).write_bytes(xlsx({"A": [["id", "price"], *rows]}))

        put("1.xlsx", (1, 1.1), (2, 12))
        put("2.xlsx", (3, "cheap"), (4, 2))
        said = program("apply", "-y", "-s", "prices")
        assert said.code != 0
        assert "E0477" in said.err
        assert "B3" in said.err
        assert len(records(program, "prices")) == 2
        put("2.xlsx", (3, 3.25), (4, 2))
        program.ok("apply", "-y", "-s", "prices")
        program.ok("apply", "-y", "-s", "prices")
        found = records(program, "prices")
        assert [[number, float(price)] for number, price in found] == [
            [1, 1.1], [2, 12.0], [3, 3.25], [4, 2.0]]  # fmt: skip
        (server.home / ".ssh" / "known_hosts").rename(server.home / "away")
        put("3.xlsx", (5, 1))
        assert "E0480" in program("apply", "-y", "-s", "prices").err
        (server.home / "away").rename(server.home / ".ssh" / "known_hosts")
        program.ok("apply", "-y", "-s", "prices")
        assert [number for number, _ in records(program, "prices")] == [1, 2, 3, 4, 5]


def test_an_api_that_breaks_between_pages_loses_and_doubles_nothing(program: Program) -> None:
    orders: list[dict[str, Any]] = [
        {"id": n, "price": n / 4, "at": f"2026-01-01T00:00:0{n}Z"} for n in range(5)
    ]
    broken = [True]

    def answer(asked: Asked) -> Any:
        since, begin = asked.query.get("since", ""), int(asked.query.get("from", 0))
        if broken and begin:
            return Answer("down", 503)
        found = [each for each in orders if each["at"] >= since]
        return found[begin : begin + 2]

    with api_server() as api:
        api.answer = answer
        pages = "offset_parameter=from&cursor=at&cursor_parameter=since"
        define(program, "orders", {
            "fetch": {"kind": "Url", "url": api.url("/orders", pages)},
            "read": {"kind": "NdJson", "schema": ["id BIGINT", "price DOUBLE"]},
            "merge": {"kind": "Ledger", "primaryKey": ["id"]},
        })  # fmt: skip
        assert "E0406" in program("apply", "-y", "-s", "orders").err
        broken.clear()
        program.ok("apply", "-y", "-s", "orders")
        assert len(records(program, "orders")) == 5
        asked = len(api.asked)
        program.ok("apply", "-y", "-s", "orders")
        assert api.asked[asked].query == {"since": "2026-01-01T00:00:04Z"}
        orders.append({"id": 5, "price": 9.0, "at": "2026-01-01T00:00:09Z"})
        broken.append(True)
        assert "E0406" in program("apply", "-y", "-s", "orders").err
        broken.clear()
        program.ok("apply", "-y", "-s", "orders")
        assert [number for number, _ in records(program, "orders")] == [0, 1, 2, 3, 4, 5]
