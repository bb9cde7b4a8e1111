"""Errors in talking to Kafka. `shown` is the address as messages may show it."""

from __future__ import annotations

from odfbuild.errors import InDefinition, IngestError
from odfbuild.ingest.secrets import scrub

_URL = InDefinition.of("fetch", "url")
_NO_OBJECT = "correct the producer, or set `ingest.badRecords` in odfbuild.yaml to `skip`"


class BadMessage(Exception):
    """A message is no record; the text says why, and `help` what to do."""

    def __init__(self, why: str, help: str = _NO_OBJECT) -> None:
        super().__init__(why)
        self.help = help


def not_reached(shown: str, said: str) -> IngestError:
    """The error for brokers that do not answer, or not any more."""
    return _problem(
        f"the brokers of {shown} do not answer",
        "E0440",
        said,
        "correct the brokers in `fetch.url`, start them, or run `odfbuild apply` again: nothing "
        "was committed, and nothing is lost",
    )


def refused(shown: str, said: str) -> IngestError:
    """The error for a login or certificate that brokers do not take, or that lacks a right."""
    return _problem(
        f"the brokers of {shown} refuse this login",
        "E0441",
        said,
        "correct user, password, `sasl`, `tls` and certificates in `fetch.url`, or grant the "
        "rights to describe and read the topic",
    )


def unusable(shown: str, what: str, said: str) -> IngestError:
    """The error for files that an address names: certificates, their keys, schemas."""
    return _problem(
        f"{what} of {shown} cannot be used",
        "E1661",
        said,
        "correct the path in `fetch.url`, which begins in the folder of odfbuild.yaml, or the file",
    )


def no_topic(shown: str, topic: str, said: str) -> IngestError:
    """The error for a topic that is not there."""
    help = "correct the topic in `fetch.url`, or create it"
    return _problem(f"{shown} has no topic '{topic}'", "E0442", said, help)


def gap(shown: str, partition: int, position: int, low: int) -> IngestError:
    """The error for messages that were deleted before they were read."""
    return _problem(
        f"{low - position} offsets of partition {partition} of {shown} are gone before they were "
        f"read: it was read up to {position}, and begins at {low} now",
        "E0443",
        "messages are older than the retention of the topic",
        "add `gaps=skip` to `fetch.url` to go on without them, and run `odfbuild apply` more often "
        "or raise the retention of the topic",
    )


def another_topic(shown: str, why: str) -> IngestError:
    """The error for a topic whose offsets are not those that were read."""
    return _problem(
        f"{shown} is not the topic that was read before: {why}",
        "E0444",
        "offsets of another topic would say nothing of what was read",
        "connect to the cluster as before, or run `odfbuild reset` for this dataset and read the "
        "topic from its beginning",
    )


def damaged(shown: str, said: str) -> IngestError:
    """The error for messages whose checksum is wrong."""
    return _problem(
        f"messages of {shown} are damaged",
        "E1660",
        said,
        "run `odfbuild apply` again; if the same offset is damaged again, the cluster keeps it so: "
        "restore the topic",
    )


def bad_message(shown: str, partition: int, offset: int, why: str, help: str) -> IngestError:
    """The error for a message that is no record."""
    return _problem(
        f"the message at offset {offset} of partition {partition} of {shown} is no record: {why}",
        "E0445",
        "",
        help,
    )


def _problem(message: str, code: str, said: str, help: str) -> IngestError:
    notes = (scrub(" ".join(said.split())),) if said else ()
    return IngestError(message, code=code, notes=notes, location=_URL, help=help)
