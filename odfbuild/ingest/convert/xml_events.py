"""XML as events, a piece at a time, without entities.

Documents of others may claim to be anything: a document type is refused, because it can define
entities that grow without end or name files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple
from xml.parsers import expat

from odfbuild.ingest.convert.problems import unreadable

_CHUNK = 1 << 16


class Start(NamedTuple):
    """An element begins; its name is `namespace local`, or `local` without a namespace."""

    name: str
    attributes: Mapping[str, str]


class End(NamedTuple):
    """An element ends."""

    name: str


Event = Start | End | str
"""Text is a `str`, in as many pieces as it comes."""


def xml_events(source: IO[bytes], called: str) -> Iterator[Event]:
    """The events of a document. Raises `IngestError` E0475, with the line."""
    found: list[Event] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: found.append(Start(name, attributes))
    parser.EndElementHandler = lambda name: found.append(End(name))
    parser.CharacterDataHandler = found.append

    def refuse(*_: object) -> None:
        raise unreadable(
            f"{called} has a document type, which may define entities",
            "remove `<!DOCTYPE …>` from the file",
        )

    parser.StartDoctypeDeclHandler = refuse
    try:
        while chunk := source.read(_CHUNK):
            parser.Parse(chunk, False)
            yield from found
            found.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise unreadable(
            f"{called} is not well-formed XML: {error}", "have whoever makes the file correct it"
        ) from None
    yield from found
