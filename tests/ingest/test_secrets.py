"""Values of the environment do not get out: not whole, not in part, not in another spelling."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.ingest import secrets
from odfbuild.ingest.secrets import HIDDEN, holds_secret, remember, resolve, resolve_address, scrub
from odfbuild.odf.model import (
    FetchStep,
    FetchStepEthereumLogs,
    FetchStepUrl,
    RequestHeader,
)
from tests.ingest.contexts import Poller

SECRET = "tok-4711/g%h#im?x&y=z+w:ä\nline-two-4712"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test remembers secrets of its own."""
    monkeypatch.setattr(secrets, "_known", set())
    monkeypatch.setattr(secrets, "_pieces", set())
    yield


def pieces(text: str, length: int) -> set[str]:
    return {text[at : at + length] for at in range(len(text) - length + 1)}


@given(st.text(min_size=8, max_size=40), st.text(max_size=10), st.data())
def test_every_piece_of_eight_characters_is_scrubbed(
    secret: str, around: str, data: st.DataObject
) -> None:
    remember(secret)
    start = data.draw(st.integers(0, len(secret) - 8))
    end = data.draw(st.integers(start + 8, len(secret)))
    shown = scrub(f"{around}{secret[start:end]}{around}")
    if "*" not in secret + around:
        assert not pieces(secret, 8) & pieces(shown, 8)


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        lambda text: quote(text, safe=""),
        lambda text: quote(text, safe="").lower(),
        quote,
        lambda text: json.dumps(text)[1:-1],
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
        lambda text: base64.b64encode(f"us:{text}".encode()).decode(),
        lambda text: base64.urlsafe_b64encode(f"user:{text}!".encode()).decode(),
        lambda text: text.splitlines()[1],
    ],
)
def test_encoded_forms_and_lines_are_scrubbed_like_the_whole(spell) -> None:
    remember(SECRET)
    spelled = spell(SECRET)
    # Ends of base64 also tell of what stands beside the secret.
    assert max(map(len, scrub(spelled).split(HIDDEN))) < 8
    inner = spelled[8:-4] if len(spelled) > 40 else spelled
    for start in range(0, len(inner) - 12, 4):
        shown = scrub(f"it says <{inner[start : start + 12]}>")
        assert not pieces(inner, 8) & pieces(shown, 8)


def test_what_all_addresses_begin_with_is_no_secret() -> None:
    remember("https://data.example.org/private/4711")
    assert scrub("see https://other.net/x") == "see https://other.net/x"
    assert "4711" not in scrub("it asked data.example.org/private/4711 again")


def test_a_state_is_refused_for_a_large_part_of_a_secret_but_not_for_a_date() -> None:
    remember("2024-01-05T10:11:12Z")
    assert not holds_secret('"2024-01-07-abcdef"')
    assert holds_secret('"v 2024-01-05T10:11:1"')


def test_what_refers_to_a_secret_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "prefix-4711/${{ env.INNER }}")
    monkeypatch.setenv("INNER", "inner-secret")
    assert resolve("${{ env.OUTER }}") == "prefix-4711/inner-secret"
    assert scrub("${{ env.OUTER }} ${{ env.INNER }}") == "${{ env.OUTER }} ${{ env.INNER }}"
    assert scrub("prefix-4711 inner-secret") == f"{HIDDEN} {HIDDEN}"


VALUE = "p/a?b#c&d=e+f:g@h %i%41[j]ü"


@pytest.mark.parametrize(
    "template",
    [
        "ftp://user:${{ env.T }}@host/path",
        "https://${{ env.T }}@host:8443/path?x=1",
        "http://user:${{ env.T }}@host",
    ],
)
def test_a_value_in_a_login_stays_in_the_login(template: str) -> None:
    parts = urlsplit(resolve_address(template, {"T": VALUE}))
    assert parts.hostname == "host"
    assert unquote(parts.password or parts.username or "") == VALUE.replace("%41", "A")


def test_a_value_of_a_parameter_stays_in_the_parameter() -> None:
    url = resolve_address("https://host/p?a=${{ env.T }}&b=${{ env.T }}#x", {"T": VALUE})
    found = parse_qs(urlsplit(url).query)
    assert found == {name: [VALUE.replace("%41", "A")] for name in "ab"}
    assert urlsplit(url).fragment == "x"


@pytest.mark.parametrize(
    ("template", "value", "address"),
    [
        ("${{ env.T }}/x.csv", "https://host/a b", "https://host/a b/x.csv"),
        ("https://${{ env.T }}/x", "host:8443", "https://host:8443/x"),
        ("https://host/${{ env.T }}.csv", "2024/01 é", "https://host/2024/01%20%C3%A9.csv"),
        ("https://host/${{ env.T }}", "x.csv?sig=a%2Fb", "https://host/x.csv?sig=a%2Fb"),
        ("https://host/x?${{ env.T }}", "a=1&b=2", "https://host/x?a=1&b=2"),
        ("s3://bucket/${{ env.T }}", "a b&c=d", "s3://bucket/a b&c=d"),
        ("file:///data/${{ env.T }}", "a b", "file:///data/a b"),
        ("http://u:${{ env.T || 'a/b' }}@h/", None, "http://u:a%2Fb@h/"),
    ],
)
def test_other_parts_of_an_address_are_filled_in_as_they_are_written(
    template: str, value: str | None, address: str
) -> None:
    assert resolve_address(template, {} if value is None else {"T": value}) == address


TOKENS = ("tok-abc/def@ghi", "ab:cd/ef", "t]k[n", "user:geheim\r\nx", "ünï%zz", "9" * 70 + "/x")


def broken(token: str) -> dict[str, FetchStep]:
    """Sources whose library chokes on what was filled in."""
    header = RequestHeader(name="X", value="${{ env.TOKEN }}")
    return {
        "login": FetchStepUrl(url="ftp://user:${{ env.TOKEN }}@127.0.0.1:1/x"),
        "whole": FetchStepUrl(url="${{ env.URL }}"),
        "port": FetchStepUrl(url="http://127.0.0.1:${{ env.TOKEN }}/x"),
        "host": FetchStepUrl(url="http://${{ env.TOKEN }}/x"),
        "ftp host": FetchStepUrl(url="ftp://${{ env.TOKEN }}/x"),
        "scheme": FetchStepUrl(url="${{ env.TOKEN }}://host/x"),
        "file host": FetchStepUrl(url="file://${{ env.TOKEN }}/x"),
        "file": FetchStepUrl(url="file:///nowhere/${{ env.TOKEN }}"),
        "bucket": FetchStepUrl(url="s3://${{ env.TOKEN }}/x"),
        "header": FetchStepUrl(url="http://127.0.0.1:1/x", headers=(header,)),
        "node": FetchStepEthereumLogs(
            chain_id=1, node_url="http://${{ env.TOKEN }}@127.0.0.1:1/", signature=None
        ),
    }


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("kind", broken(""))
def test_no_error_of_a_library_tells_even_a_short_part_of_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, token: str
) -> None:
    monkeypatch.setenv("TOKEN", token)
    monkeypatch.setenv("URL", f"ftp://user:{token}@127.0.0.1:1/x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with pytest.raises(IngestError) as caught:
        Poller(tmp_path, broken(token)[kind], attempts=1, connect_seconds=5).poll()
    error = caught.value
    said = "\n".join((error.message, *error.notes, error.help or ""))
    parts = {part for part in pieces(token, 5) if part.isalnum() or "-" in part}
    assert [part for part in parts if part in said] == []
    assert "${{" in said or kind == "header"
