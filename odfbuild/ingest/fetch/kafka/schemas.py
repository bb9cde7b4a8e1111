"""Values of messages in Avro and Protobuf, by schemas that lie in files.

A registry knows schemas by number, and messages begin with it. Sources: Confluent Schema Registry,
"Wire format"; Avro specification; Protocol Buffers, "Encoding", "Self-describing Messages".
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from odfbuild.errors import missing_extra
from odfbuild.ingest.fetch.kafka.address import Wanted
from odfbuild.ingest.fetch.kafka.problems import BadMessage

_MAGIC = b"\0"
_BEGINNING = 5


class Schemas(Protocol):
    """What turns the bytes of a message into a record."""

    def read(self, value: bytes) -> Any:
        """The record in the value of a message. Raises `BadMessage`."""


def schemas_of(asked: Wanted, root: Path) -> Schemas | None:
    """What reads the messages of an address whose schemas lie below `root`; `None` for JSON."""
    if asked.format == "avro":
        return _Avro(root / asked.files["schemas"])
    if asked.format == "protobuf":
        return _Protobuf(root / asked.files["schemas"], asked.message)
    return None


class _Avro:
    """The schemas of a registry as files `NUMBER.avsc` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[int, Any] = {}

    def read(self, value: bytes) -> Any:
        try:
            import fastavro
        except ModuleNotFoundError:
            raise missing_extra("kafka", "messages in Avro") from None
        number = _number_of_schema(value)
        with _Reading(f"schema {number}", self._folder / f"{number}.avsc"):
            return fastavro.schemaless_reader(
                io.BytesIO(value[_BEGINNING:]), self._schema(number), None
            )

    def _schema(self, number: int) -> Any:
        if number not in self._known:
            from fastavro import parse_schema

            text = (self._folder / f"{number}.avsc").read_text(encoding="utf-8")
            self._known[number] = parse_schema(json.loads(text))
        return self._known[number]


class _Protobuf:
    """Descriptor sets, as `protoc --include_imports --descriptor_set_out=FILE` writes them.

    Those of a registry are files `NUMBER.desc` in the folder `place`; a message says which of their
    types it has. With `message`, each value is one of this type, and `place` is the file.
    """

    def __init__(self, place: Path, message: str | None) -> None:
        self._place = place
        self._message = message
        self._known: dict[Path, Callable[[list[int] | str], Any]] = {}

    def read(self, value: bytes) -> Any:
        if self._message is not None:
            return self._record(self._place, self._message, value)
        number = _number_of_schema(value)
        path, body = _path_of_type(value[_BEGINNING:])
        return self._record(self._place / f"{number}.desc", path, body)

    def _record(self, file: Path, wanted: list[int] | str, body: bytes) -> Any:
        with _Reading(f"the types of {file.name}", file):
            if file not in self._known:
                self._known[file] = _types(file)
            message = self._known[file](wanted)()
            message.ParseFromString(body)
            return _plain(message)


class _Reading:
    """Turns what goes wrong with a message into `BadMessage`; `schema` is read from `file`."""

    def __init__(self, schema: str, file: Path) -> None:
        self._schema, self._file = schema, file

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise BadMessage(
                f"the file of its schema is not there: {self._file.name}",
                f"put it into {self._file.parent.name}/, as the registry has it",
            ) from None
        known = BadMessage | OSError | ModuleNotFoundError | MemoryError
        if isinstance(error, Exception) and not isinstance(error, known):
            # Whatever a library makes of bytes of others.
            raise BadMessage(f"it does not fit {self._schema} ({type(error).__name__})") from None


def _number_of_schema(value: bytes) -> int:
    if value[:1] != _MAGIC or len(value) < _BEGINNING:
        raise BadMessage("it does not begin with the number of a schema", "use another `format`")
    return int.from_bytes(value[1:_BEGINNING], "big")


def _path_of_type(data: bytes) -> tuple[list[int], bytes]:
    """Which type of a file a message has, from the outermost in, and what follows.

    The count and the numbers are zigzag varints; a count of 0 stands for the first type.
    """
    source = io.BytesIO(data)
    path = [_zigzag(source) for _ in range(_zigzag(source))] or [0]
    return path, source.read()


def _zigzag(source: io.BytesIO) -> int:
    number = 0
    for shift in range(0, 35, 7):
        byte = source.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            if number & 1:
                break
            return number >> 1
    raise BadMessage("it does not say which type of its schema it has", "name it with `message`")


def _types(file: Path) -> Callable[[list[int] | str], Any]:
    """The classes of messages of a descriptor set, by their names or their places in its last file.

    `protoc` writes a file behind those that it imports.
    """
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message_factory import GetMessageClass
    except ModuleNotFoundError:
        raise missing_extra("kafka", "messages in Protobuf") from None
    files = FileDescriptorSet.FromString(file.read_bytes()).file
    pool = DescriptorPool()
    for each in files:
        pool.Add(each)

    def found(wanted: list[int] | str) -> Any:
        name = wanted if isinstance(wanted, str) else ".".join(_names(files[-1], wanted))
        return GetMessageClass(pool.FindMessageTypeByName(name))

    return found


def _names(file: Any, path: list[int]) -> Iterator[str]:
    if file.package:
        yield file.package
    types = file.message_type
    for each in path:
        yield types[each].name
        types = types[each].nested_type


def _plain(message: Any) -> Any:
    """A message as a value of JSON: enumerations by name, maps as objects, fields without a value
    left out; one that cannot lack a value has its default.
    """
    from google.protobuf.json_format import MessageToDict

    if message.DESCRIPTOR.file.name.startswith("google/protobuf/"):
        # Times, durations and the like; a wrapper stands for its value.
        fields = message.DESCRIPTOR.fields_by_name
        return message.value if set(fields) == {"value"} else MessageToDict(message)
    record: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            of_value = field.message_type.fields_by_name["value"]
            record[field.name] = {_key(key): _value(of_value, value[key]) for key in value}
        elif field.is_repeated:
            record[field.name] = [_value(field, each) for each in value]
        elif not field.has_presence or message.HasField(field.name):
            record[field.name] = _value(field, value)
    return record


def _is_map(field: Any) -> bool:
    return bool(
        field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry
    )


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value
