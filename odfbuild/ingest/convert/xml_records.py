"""Records of an XML document, as CSV: the values of elements and attributes that are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from odfbuild.ingest.convert.columns import csv_lines, named_columns, path_of
from odfbuild.ingest.convert.problems import mixed, no_table, too_large
from odfbuild.ingest.convert.words import Conversion
from odfbuild.ingest.convert.xml_events import End, Start, xml_events

_MOST_CHARACTERS = 64 << 20
_DEEPEST = 1000


def lines_of(source: IO[bytes], wanted: Conversion) -> Iterator[str]:
    """A header, and a line for each record. Raises `IngestError`."""
    columns = named_columns(wanted.all("column"))
    paths = [path_of(each) for each in columns.values()]
    return csv_lines(columns, _rows(source, (wanted.one("record") or "").split("/"), paths))


def _rows(source: IO[bytes], record: Sequence[str], paths: Sequence[str]) -> Iterator[list[str]]:
    """The values of each record; elements are called by their names without a namespace."""
    outside: list[str] = []
    inside: _Record | None = None
    count = 0
    for each in xml_events(source, "the document"):
        if isinstance(each, str):
            if inside is not None:
                inside.text(each)
            continue
        if inside is not None:
            if not inside.take(each):
                yield [inside.values.get(path, "") for path in paths]
                inside = None
                outside.pop()
            continue
        if isinstance(each, End):
            outside.pop()
            continue
        outside.append(_local(each.name))
        if len(outside) > _DEEPEST:
            raise too_large("its elements are nested too deeply", "check what makes the document")
        if outside[-len(record) :] == list(record):
            count += 1
            inside = _Record(each, frozenset(paths), count)
    if not count:
        raise no_table(
            f"the document has no element '{'/'.join(record)}'",
            "correct --record: names without their namespaces, from outside to inside",
        )


class _Record:
    """What is known of a record before it ends; `number` counts them."""

    def __init__(self, start: Start, paths: frozenset[str], number: int) -> None:
        self.values: dict[str, str] = {}
        self._paths = paths
        self._number = number
        self._names: list[str] = []
        self._texts: list[list[str]] = [[]]
        self._size = 0
        self._attributes(start)

    def text(self, text: str) -> None:
        """Text of the element that is open."""
        self._size += len(text)
        if self._size > _MOST_CHARACTERS:
            raise too_large(
                f"record {self._number:,} has more than {_MOST_CHARACTERS:,} characters",
                "choose smaller elements as records with --record",
            )
        self._texts[-1].append(text)

    def take(self, event: Start | End) -> bool:
        """Whether the record goes on behind an event."""
        if isinstance(event, Start):
            self._names.append(_local(event.name))
            self._texts.append([])
            if len(self._names) > _DEEPEST:
                raise too_large(
                    f"elements of record {self._number:,} are nested too deeply",
                    "check what makes the document",
                )
            self._attributes(event)
            return True
        self._add("/".join(self._names) or ".", "".join(self._texts.pop()).strip())
        if not self._names:
            return False
        self._names.pop()
        return True

    def _attributes(self, start: Start) -> None:
        for name, value in start.attributes.items():
            self._add("/".join((*self._names, f"@{_local(name)}")), value)

    def _add(self, path: str, value: str) -> None:
        if path not in self._paths:
            return
        if path in self.values:
            raise mixed(
                f"record {self._number:,} has several values of '{path}': "
                f"'{self.values[path][:40]}' and '{value[:40]}'",
                "choose the elements that repeat as records with --record, or another column",
            )
        self.values[path] = value


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
