"""`email` of `notify`: a real mail server gets what has just failed, through TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.servers.programs import free_port

PASSWORD = "geh@im:/geheim"


class Server:
    """A mail server that keeps what it gets, and refuses recipients at `nowhere`."""

    def __init__(self, **options: Any) -> None:
        self.messages: list[EmailMessage] = []
        self.encrypted: list[bool] = []
        self.port = free_port()
        self.controller = Controller(self, "127.0.0.1", self.port, **options)
        self.controller.start()

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address.endswith("@nowhere.example"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        found = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(found, EmailMessage)
        self.messages.append(found)
        self.encrypted.append(session.ssl is not None)
        return "250 OK"


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """That of a server on this machine, by an authority that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(**options: Any) -> Server:
        started.append(Server(**options))
        return started[-1]

    yield start
    for each in started:
        each.controller.stop()


def login(*given: Any) -> AuthResult:
    data = given[-1]
    assert isinstance(data, LoginPassword)
    return AuthResult(success=(data.login, data.password) == (b"robot", PASSWORD.encode()))


@pytest.fixture
def notify(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Names a mail server to the machine, for a project whose source is wrong."""
    (tiny.root / "data" / "1.csv").write_text("event_time,id,value\nno,time,here\n")
    file = tmp_path / "machine.yaml"
    monkeypatch.setenv("ODFBUILD_CONFIG", str(file))
    monkeypatch.setattr("odfbuild.exchange.messages._WAIT", 0.01)

    def write(server: str, *to: str) -> None:
        file.write_text(
            "kind: Machine\nversion: 1\ncontent:\n  notify:\n"
            f"    - email: [{', '.join(to or ('ann@example.org', 'bob@example.org'))}]\n"
            f"      sender: odfbuild@example.org\n      server: {server}\n"
        )

    return write


def test_a_failure_and_its_recovery_are_mailed_once_each_through_tls_with_a_password(
    tiny: Tiny,
    odfbuild: Program,
    notify: Callable[..., None],
    serve: Callable[..., Server],
    certificate: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = serve(tls_context=certificate, require_starttls=True, authenticator=login)
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    notify(f"smtp://robot:${{{{ env.SMTP_PASSWORD }}}}@localhost:{server.port}")
    assert odfbuild("apply", "-y").code == 1
    assert odfbuild("apply", "-y").code == 1
    (message,) = server.messages
    assert (message["From"], message["To"]) == (
        "odfbuild@example.org",
        "ann@example.org, bob@example.org",
    )
    assert message["Subject"] == "odfbuild, project tiny: 1 problem"
    assert message["Date"] and message["Message-ID"]
    text = "odfbuild, project tiny:\nroot failed: "
    assert message.get_content().replace("\r", "").startswith(text)
    assert server.encrypted == [True]
    (tiny.root / "data" / "1.csv").write_text("event_time,id,value\n2024-01-01 00:00:00,1,1\n")
    odfbuild.apply()
    _, message = server.messages
    assert message["Subject"] == "odfbuild, project tiny: 1 dataset recovered"
    assert message.get_content().splitlines() == ["odfbuild, project tiny:", "root works again"]


def test_tls_from_the_start_is_spoken_too(
    odfbuild: Program,
    notify: Callable[..., None],
    serve: Callable[..., Server],
    certificate: ssl.SSLContext,
) -> None:
    server = serve(ssl_context=certificate)
    notify(f"smtps://localhost:{server.port}")
    assert odfbuild("apply", "-y").code == 1
    assert len(server.messages) == 1


def test_a_server_of_this_machine_needs_no_tls(
    odfbuild: Program, notify: Callable[..., None], serve: Callable[..., Server]
) -> None:
    server = serve()
    notify(f"smtp://127.0.0.1:{server.port}")
    assert odfbuild("apply", "-y").code == 1
    assert (len(server.messages), server.encrypted) == (1, [False])


@pytest.mark.parametrize(
    ("address", "to", "why"),
    [
        ("smtp://robot:${{ env.SMTP_PASSWORD }}@localhost:{port}", (), "STARTTLS"),
        ("smtp://localhost:{port}", ("ann@nowhere.example",), "no such mailbox"),
        ("smtp://localhost:{port}", ("ann@nowhere.example", "bob@example.org"), "no such mailbox"),
        ("smtp://localhost:9", (), "Connection refused"),
        ("smtp://localhost:99999", (), "Port out of range"),
        ("smtp://robot:${{ env.NOBODY_SET_IT }}@localhost:{port}", (), "NOBODY_SET_IT"),
    ],
)
def test_a_mail_that_cannot_be_sent_is_told_without_its_password(
    odfbuild: Program,
    notify: Callable[..., None],
    serve: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    to: tuple[str, ...],
    why: str,
) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    notify(address.replace("{port}", str(serve().port)), *to)
    said = odfbuild("apply", "-y")
    assert said.code == 1
    assert "error[E0912]: no alert could be sent to " in said.err
    assert why in said.err
    assert "geh" not in said.err


def test_an_untrusted_server_gets_no_password(
    odfbuild: Program,
    notify: Callable[..., None],
    serve: Callable[..., Server],
    certificate: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)
    server = serve(tls_context=certificate, require_starttls=True, authenticator=login)
    notify(f"smtp://robot:${{{{ env.SMTP_PASSWORD }}}}@localhost:{server.port}")
    said = odfbuild("apply", "-y")
    assert "E0912" in said.err and "CERTIFICATE_VERIFY_FAILED" in said.err
    assert server.messages == []


@pytest.mark.parametrize("missing", ["sender", "server"])
def test_an_entry_with_half_of_an_email_is_refused(
    odfbuild: Program, tmp_path: Path, notify: Callable[..., None], missing: str
) -> None:
    notify("smtp://localhost")
    file = tmp_path / "machine.yaml"
    lines = [each for each in file.read_text().splitlines() if f"{missing}:" not in each]
    file.write_text("\n".join(lines))
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0173]" in said.err
