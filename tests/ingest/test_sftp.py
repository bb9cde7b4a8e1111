"""Files of SFTP servers: one, or those of a pattern, against OpenSSH's own server."""

import asyncio
import contextlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from odfbuild.errors import EnvironmentProblem, IngestError, OdfbuildError
from odfbuild.ingest.check import problems_of, templates_of
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch import sftp as sftp_step
from odfbuild.ingest.fetch.download_cache import KeptDownload
from odfbuild.ingest.fetch.sftp_address import sftp_place
from odfbuild.ingest.fetch.url import check_url
from odfbuild.ingest.probe import listing, probe
from odfbuild.ingest.watch import NOTHING_TO_WATCH, look
from odfbuild.odf.model import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepCsv,
    SetPollingSource,
    SourceOrdering,
)
from odfbuild.odf.timestamp import Timestamp
from tests.ingest.contexts import Poller, at
from tests.servers.programs import free_port
from tests.servers.sftp import Sftp, sftp_server

MODIFIED = Timestamp.parse("2020-01-01T00:00:00Z")
BIG = bytes(range(256)) * 60_000


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with sftp_server(tmp_path_factory.mktemp("sftp")) as running:
        yield running


@pytest.fixture
def server(started: Sftp, monkeypatch) -> Sftp:
    """The server, asked by who has its key and knows it."""
    monkeypatch.setenv("HOME", str(started.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(sftp_step, "_FIRST_WAIT", 0.01)
    return started


def put(server: Sftp, name: str, content: bytes, moment: Timestamp = MODIFIED) -> Path:
    file = server.files / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (moment.millis / 1000, moment.millis / 1000))
    return file


def one(server: Sftp, root: Path, name: str, **settings) -> Poller:
    return Poller(root, FetchStepUrl(url=server.url(f"{server.files}/{name}")), **settings)


def several(server: Sftp, root: Path, pattern: str, **more) -> Poller:
    path = server.url(f"{server.files}/{root.name}/{pattern}")
    return Poller(root, FetchStepFilesGlob(path=path, **more))


def error_of(polled: Poller) -> OdfbuildError:
    with pytest.raises(OdfbuildError) as caught:
        polled.poll()
    assert caught.value.help
    return caught.value


# --- one file ---


def test_a_file_is_fetched_once_for_each_change(server, tmp_path):
    put(server, "once.csv", b"one")
    source = one(server, tmp_path, "once.csv")
    assert source.poll() == [b"one"]
    assert source.state.value == f"{MODIFIED} 3"
    assert source.found[0].event_time == MODIFIED
    assert source.poll() == []
    later = Timestamp(MODIFIED.ns + 10**9)
    put(server, "once.csv", b"two", later)
    assert source.poll() == [b"two"]
    put(server, "once.csv", b"three", later)  # of the same time, of another size
    assert source.poll() == [b"three"]


def test_a_file_that_was_only_touched_gives_a_state_and_no_data(server, tmp_path):
    put(server, "same.csv", b"same")
    source = one(server, tmp_path, "same.csv")
    source.poll()
    put(server, "same.csv", b"same", Timestamp(MODIFIED.ns + 10**9))
    context = replace(at(tmp_path), content=source.found[0].content)
    (found,) = fetch(source.step, source.state, context)
    assert found.file is None
    assert "same bytes" in found.note


def test_a_path_is_absolute_or_begins_where_the_login_leads(server):
    assert sftp_place("sftp://h/in/a%20b.csv", "").path == "/in/a b.csv"
    assert sftp_place("sftp://h/~/in/a.csv", "").path == "in/a.csv"
    place = sftp_place("sftp://me:p%40ss@[::1]:2222/in/[ab]?.csv", "", is_pattern=True)
    assert (place.host, place.port, place.user, place.password) == ("::1", 2222, "me", "p@ss")
    assert place.path == "/in/[ab]?.csv"


def test_what_was_fetched_and_not_committed_is_not_fetched_again(server, tmp_path, monkeypatch):
    put(server, "kept.csv", b"kept")
    source = one(server, tmp_path, "kept.csv")
    assert source.poll(crash="before") == []
    monkeypatch.setattr(KeptDownload, "begin", None)  # whoever calls it fails
    assert source.poll(crash="after") == [b"kept"]
    assert source.poll() == []


def test_a_download_that_was_killed_goes_on_in_the_next_run(server, tmp_path, monkeypatch):
    put(server, "big.bin", BIG)
    source = one(server, tmp_path, "big.bin", attempts=1)
    original = KeptDownload.write

    def killed(self, chunks, shown):
        original(self, chunks, shown)
        if self.size >= 4 << 20:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptDownload, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            source.poll()
    sizes = []

    def counted(self, chunks, shown):
        sizes.append(sum(map(len, chunks)))
        original(self, chunks, shown)

    monkeypatch.setattr(KeptDownload, "write", counted)
    assert source.poll() == [BIG]
    assert sum(sizes) == len(BIG) - (4 << 20)


def test_a_file_that_grows_while_it_is_read_is_read_again(server, tmp_path, monkeypatch):
    file = put(server, "grows.csv", b"a\n")
    source = one(server, tmp_path, "grows.csv")
    original = KeptDownload.write
    times = []

    def growing(self, chunks, shown):
        original(self, chunks, shown)
        if not times:
            times.append(1)
            file.write_bytes(b"a\nb\n")

    monkeypatch.setattr(KeptDownload, "write", growing)
    assert source.poll() == [b"a\nb\n"]


def test_a_file_that_is_too_large_is_refused(server, tmp_path):
    put(server, "big.bin", BIG)
    assert error_of(one(server, tmp_path, "big.bin", max_bytes=1000)).code == "E0409"


# --- patterns ---


def test_each_file_of_a_pattern_is_ingested_once_in_order_of_names(server, tmp_path):
    for name, content in {
        "b.csv": b"two",
        "a.csv": b"one",
        "x.txt": b"no",
        "d/c.csv": b"-",
    }.items():
        put(server, f"{tmp_path.name}/{name}", content)
    source = several(server, tmp_path, "*.csv")
    assert source.poll() == [b"one", b"two"]
    assert (source.state.kind, source.state.value) == ("odf/etag", "b.csv")
    assert source.found[1].display_name == source.step.path.replace("*", "b")
    assert source.poll() == []
    put(server, f"{tmp_path.name}/c.csv", b"three")
    put(server, f"{tmp_path.name}/aa.csv", b"late, and before what was read")
    assert source.poll() == [b"three"]


def test_a_run_that_is_killed_after_a_commit_goes_on_with_the_next_file(server, tmp_path):
    for name in "abc":
        put(server, f"{tmp_path.name}/{name}.csv", name.encode())
    source = several(server, tmp_path, "?.csv")
    assert source.poll(crash="before") == []
    assert source.poll(crash="after") == [b"a"]
    assert source.poll(crash="after") == [b"b"]
    assert source.poll() == [b"c"]
    assert source.committed == [b"a", b"b", b"c"]


def test_a_pattern_may_go_through_folders_that_repeat_names(server, tmp_path):
    for day in (1, 2):
        put(server, f"{tmp_path.name}/day={day}/part.csv", b"%d" % day)
    source = several(server, tmp_path, "day=*/*.csv")
    assert source.poll() == [b"1", b"2"]
    assert source.state.value == "day=2/part.csv"


def test_event_times_come_from_names_or_from_the_server(server, tmp_path):
    put(server, f"{tmp_path.name}/b-2026-01-01.csv", b"1")
    put(server, f"{tmp_path.name}/a-2026-02-01.csv", b"2")
    named = EventTimeSourceFromPath(pattern=r"-(\d+-\d+-\d+)", timestamp_format="%Y-%m-%d")
    source = several(server, tmp_path, "*.csv", event_time=named, order=SourceOrdering.ByEventTime)
    assert source.poll() == [b"1", b"2"]
    assert str(source.found[0].event_time) == "2026-01-01T00:00:00Z"
    told = several(server, tmp_path, "*.csv", event_time=EventTimeSourceFromMetadata())
    told.poll()
    assert told.found[0].event_time == MODIFIED


def test_a_pattern_that_matches_nothing_is_an_error_until_something_was_read(server, tmp_path):
    source = several(server, tmp_path, "*.csv")
    assert error_of(source).code == "E0401"
    put(server, f"{tmp_path.name}/a.csv", b"1")
    source.poll()
    (server.files / tmp_path.name / "a.csv").unlink()
    assert source.poll() == []


def test_planning_does_not_connect(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    step = FetchStepFilesGlob(path=f"sftp://nobody@localhost:{free_port()}/in/*.csv")
    source = SetPollingSource(fetch=step, read=ReadStepCsv(), merge=MergeStrategyAppend())
    assert listing(source, str(tmp_path)) == []
    facts = probe(source, None, tmp_path)
    assert facts.status == "unknown"
    assert facts.message == "the server is checked for new files at apply"
    assert look(source, str(tmp_path)) == NOTHING_TO_WATCH
    assert list(problems_of(source)) == []


# --- what is wrong ---


@pytest.mark.parametrize("known", [None, "", "other"])
def test_a_host_that_is_not_known_is_never_accepted(server, tmp_path, monkeypatch, known):
    put(server, "x.csv", b"x")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for name in ("id_ed25519", "id_ed25519.pub"):
        (home / ".ssh" / name).write_bytes((server.home / ".ssh" / name).read_bytes())
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    if known is not None:
        line = f"[localhost]:{server.port} {other}" if known else ""
        (home / ".ssh" / "known_hosts").write_text(line)
    # What OpenSSH itself would take for permission.
    (home / ".ssh" / "config").write_text("StrictHostKeyChecking no\nUserKnownHostsFile none\n")
    monkeypatch.setenv("HOME", str(home))
    error = error_of(one(server, tmp_path, "x.csv"))
    assert error.code == "E0480"
    assert "ssh-keyscan" in error.help


def test_a_login_that_is_refused_is_told_once(server, tmp_path, monkeypatch):
    put(server, "x.csv", b"x")
    monkeypatch.setenv("PW", "s3cret-of-nobody")
    url = f"sftp://nobody:${{{{ env.PW }}}}@localhost:{server.port}{server.files}/x.csv"
    error = error_of(Poller(tmp_path, FetchStepUrl(url=url)))
    assert error.code == "E0481"
    assert "s3cret" not in f"{error.message}{error.notes}{error.help}"
    (server.home / ".ssh" / "id_ed25519").rename(server.home / "away")
    try:
        assert error_of(one(server, tmp_path, "x.csv")).code == "E0481"
    finally:
        (server.home / "away").rename(server.home / ".ssh" / "id_ed25519")


def test_a_file_that_is_missing_is_told(server, tmp_path):
    error = error_of(one(server, tmp_path, "none.csv"))
    assert error.code == "E0404"
    assert "none.csv" in error.message


def test_a_server_that_does_not_answer_is_tried_several_times(server, tmp_path):
    url = f"sftp://me@localhost:{free_port()}/x.csv"
    error = error_of(Poller(tmp_path, FetchStepUrl(url=url), attempts=2))
    assert error.code == "E0406"
    assert error.notes == ("tried 2 times",)


@pytest.mark.parametrize(
    "url", ["sftp://host", "sftp:///x.csv", "sftp://host:0/x", "sftp://host:99999/x"]
)
def test_wrong_addresses_are_found_before_anything_is_fetched(url):
    with pytest.raises(IngestError) as caught:
        check_url(url)
    assert caught.value.code == "E0407"


def test_a_missing_extra_is_named_with_its_command(server, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "asyncssh", None)
    with pytest.raises(EnvironmentProblem) as caught:
        one(server, tmp_path, "x.csv").poll()
    assert caught.value.code == "E0903"
    assert "odfbuild[sftp]" in caught.value.help


# --- passwords ---


class _Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return (username, password) == ("reader", "p@ss/word")


@contextlib.contextmanager
def password_server(folder: Path):
    """OpenSSH takes passwords of the machine only, so this is another server."""
    port, key = free_port(), asyncssh.generate_private_key("ssh-ed25519")
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(
        asyncssh.create_server(
            _Server,
            "127.0.0.1",
            port,
            server_host_keys=[key],
            sftp_factory=lambda chan: asyncssh.SFTPServer(chan, chroot=bytes(folder)),
        )
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield port, key.export_public_key().decode()
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def test_a_password_comes_from_the_environment_whatever_its_characters(tmp_path, monkeypatch):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.csv").write_bytes(b"1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PW", "p@ss/word")
    with password_server(tmp_path / "served") as (port, key):
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "known_hosts").write_text(f"[localhost]:{port} {key}")
        host = f"sftp://reader:${{{{ env.PW }}}}@localhost:{port}"
        assert Poller(tmp_path, FetchStepUrl(url=f"{host}/a.csv")).poll() == [b"1"]
        step = FetchStepFilesGlob(path=f"{host}/*.csv")
        source = Poller(tmp_path, step)
        assert source.poll() == [b"1"]
        assert source.found[0].display_name == f"{host}/a.csv"
        assert list(templates_of(step)) == [(("path",), step.path)]
