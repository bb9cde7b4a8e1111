"""Signed messages of other services: whether they are genuine, and the record each one is.

The key of a message is the id that its sender gives it, so one that is sent again counts once. What
GitHub signs is the body alone, not the id beside it, so there the body is a second key: whoever
sends a recorded message again under another id adds nothing. Stripe signs a time, too.
Sources: GitHub, "Validating webhook deliveries"; Stripe, "Verify webhook signatures manually".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from odfbuild.errors import Errors, OdfbuildError, RepositoryError
from odfbuild.exchange.repositories.serve.rights import SHORTEST
from odfbuild.ingest.secrets import resolve
from odfbuild.project.settings.serving import Webhook
from odfbuild.values import Value

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_SIGNED = re.compile(r"sha256=([0-9a-f]{64})")


class Signed(Value):
    """A genuine message: the idempotency keys, and the record as a line of JSON."""

    keys: tuple[str, ...]
    line: bytes


class Hook(Value):
    """A webhook with its secret at hand."""

    about: Webhook
    secret: bytes

    def read(self, headers: Mapping[str, str], body: bytes, now: float) -> Signed:
        """The message with that body; `now` in seconds since 1970.

        Raises `RepositoryError` E1058 for one that is not genuine, E1055 for one that is no JSON.
        """
        if self.about.sender == "github":
            return self._of_github(headers, body)
        return self._of_stripe(headers, body, now)

    def _of_github(self, headers: Mapping[str, str], body: bytes) -> Signed:
        found = _SIGNED.fullmatch(headers.get("x-hub-signature-256", ""))
        if found is None or not self._is_of(body, [found[1]]):
            raise self._refused("its header `X-Hub-Signature-256` is not the one of its body")
        told = {}
        for name in ("event", "delivery"):
            told[name] = headers.get(f"x-github-{name}", "")
            if not _ID.fullmatch(told[name]):
                raise self._refused(f"it has no header `X-GitHub-{name.capitalize()}`")
        _object(body)
        head = "".join(f"{json.dumps(name)}: {json.dumps(text)}, " for name, text in told.items())
        line = b'{%s"payload": %s}' % (head.encode(), _in_one_line(body))
        digest = hashlib.sha256(body).hexdigest()
        return Signed((f"github:{told['delivery']}", f"github:sha256:{digest}"), line)

    def _of_stripe(self, headers: Mapping[str, str], body: bytes, now: float) -> Signed:
        pairs = [each.partition("=") for each in headers.get("stripe-signature", "").split(",")]
        times = [value for key, _, value in pairs if key.strip() == "t"]
        signatures = [value for key, _, value in pairs if key.strip() == "v1"]
        time = times[0] if len(times) == 1 and re.fullmatch("[0-9]{1,12}", times[0]) else ""
        if not time or not self._is_of(time.encode() + b"." + body, signatures):
            raise self._refused("its header `Stripe-Signature` is not the one of its body")
        if abs(now - int(time)) > self.about.tolerance_seconds:
            raise self._refused("it was signed too long ago, or the clocks differ")
        id = _object(body).get("id")
        if not isinstance(id, str) or not _ID.fullmatch(id):
            raise _no_object("its member `id` is missing")
        return Signed((f"stripe:{id}",), _in_one_line(body))

    def _is_of(self, signed: bytes, signatures: Sequence[str]) -> bool:
        """Whether one of the signatures is that of the bytes; takes as long for any that is not."""
        right = hmac.new(self.secret, signed, hashlib.sha256).hexdigest().encode()
        found = [hmac.compare_digest(right, each.encode(errors="replace")) for each in signatures]
        return any(found)

    def _refused(self, why: str) -> RepositoryError:
        return RepositoryError(
            f"the message to the webhook '{self.about.name}' is refused: {why}",
            code="E1058",
            help="use the same secret here and at the sender, and send the body unchanged",
        )


def hooks_of(webhooks: Sequence[Webhook]) -> dict[str, Hook]:
    """The webhooks by name; `RepositoryError` E1059 for those that are wrong, all at once."""
    found: dict[str, Hook] = {}
    errors: list[OdfbuildError] = []
    for number, each in enumerate(webhooks):
        place = f"serve.ingest.webhooks[{number}]"
        try:
            secret = resolve(each.secret)
        except OdfbuildError as error:
            errors.append(error)
            continue
        if not _NAME.fullmatch(each.name) or each.name == "ingest":
            what = f"'{each.name}' of {place} cannot be a part of an address"
            errors.append(_wrong(what, "use letters, digits, `.`, `_` and `-`, and not `ingest`"))
        elif each.name in found:
            errors.append(_wrong(f"there are two webhooks '{each.name}'", "rename one"))
        elif len(secret) < SHORTEST:
            errors.append(
                _wrong(
                    f"the secret of {place} is too short",
                    f"use {SHORTEST} characters or more, such as `openssl rand -hex 24` prints",
                )
            )
        found[each.name] = Hook(each, secret.encode())
    if errors:
        raise Errors(errors) if len(errors) > 1 else errors[0]
    return found


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise _no_object(str(error)) from None
    if not isinstance(found, dict):
        raise _no_object("it is no object")
    return found


def _in_one_line(body: bytes) -> bytes:
    """JSON has line breaks between its tokens only; within texts they are escaped."""
    return body.strip().replace(b"\r", b" ").replace(b"\n", b" ")


def _no_object(why: str) -> RepositoryError:
    return RepositoryError(
        f"the body of the message is not the JSON of a webhook: {why}",
        code="E1055",
        help="set the content type of the webhook to application/json at the sender",
    )


def _wrong(problem: str, help: str) -> RepositoryError:
    return RepositoryError(problem, code="E1059", help=help)
