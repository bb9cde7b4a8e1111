"""`odfbuild new sftp` looks at what the server has, `doctor --deep` tries it, `apply` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.apply.in_process import Program
from tests.servers.sftp import Sftp, sftp_server


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sftp]:
    with sftp_server(tmp_path_factory.mktemp("sftp")) as running:
        for day in (1, 2):
            file = running.files / f"orders-{day}.csv"
            file.write_text(f"id,amount,at\n{day},1.50,2026-01-0{day}T12:00:00Z\n{day}9,2.25,\n")
        yield running


@pytest.fixture
def server(started: Sftp, monkeypatch: pytest.MonkeyPatch) -> Sftp:
    monkeypatch.setenv("HOME", str(started.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return started


def test_a_pattern_and_a_file_are_proposed_from_what_the_server_has(
    odfbuild: Program, server: Sftp
) -> None:
    url = server.url(f"{server.files}/orders-*.csv")
    text = odfbuild.ok("new", "sftp", "orders", url, "-n").out
    for part in ("kind: FilesGlob", f"path: {url}", "amount DECIMAL(18, 2)", "kind: Ledger",
                 "the 2 records of orders-1.csv", "- id\n"):  # fmt: skip
        assert part in text
    url = server.url(f"{server.files}/orders-2.csv")
    text = odfbuild.ok("new", "sftp", "orders", url, "-n").out
    for part in ("kind: Url", f"url: {url}", "kind: Snapshot", "orders-2.csv had them"):
        assert part in text


@pytest.mark.parametrize(
    ("rest", "code"), [("/none-*.csv", "E0401"), ("/none.csv", "E0404"), ("/orders-1.xyz", "E0143")]
)
def test_what_the_server_does_not_have_is_an_error(
    odfbuild: Program, server: Sftp, rest: str, code: str
) -> None:
    said = odfbuild("new", "sftp", "orders", server.url(f"{server.files}{rest}"))
    assert code in said.err


def test_other_addresses_are_refused(odfbuild: Program) -> None:
    assert "E0143" in odfbuild("new", "sftp", "orders", "ftp://host/x.csv").err


def test_doctor_tries_the_servers_that_sources_read(odfbuild: Program, server: Sftp) -> None:
    odfbuild.ok("new", "sftp", "orders", server.url(f"{server.files}/orders-*.csv"))
    odfbuild.ok("new", "sftp", "first", server.url(f"{server.files}/orders-1.csv"))

    def found() -> dict[str, str]:
        said = odfbuild("doctor", "--deep", "--json")
        (check,) = [e for e in json.loads(said.out)["checks"] if e["name"] == "sftp servers"]
        return check

    check = found()
    assert check["status"] == "ok"
    assert check["detail"] == "answered for first (1 file), orders (2 files)"
    (server.files / "orders-1.csv").rename(server.files / "away.csv")
    try:
        check = found()
    finally:
        (server.files / "away.csv").rename(server.files / "orders-1.csv")
    assert check["status"] == "fail"
    assert "first: there is no file" in check["detail"]
