"""Event signatures of Solidity: `Transfer(address indexed from, address to, uint256 value)`.

Parsed here, decoded by `eth_abi`. Source: Solidity, "Contract ABI Specification", Events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from odfbuild.errors import InDefinition, IngestError, missing_extra
from odfbuild.ingest.fetch.ethereum.log import Log
from odfbuild.values import Value

_SIGNATURE = re.compile(r"(?:event\s+)?([A-Za-z_$][\w$]*)\s*\((.*)\)\s*;?", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_TUPLE = re.compile(r"(?:tuple)?\s*\((.*)\)((?:\[\d*\])*)", re.DOTALL)
_ELEMENTARY = re.compile(
    r"(bool|address|string|bytes|function|bytes(?:[1-9]|[12]\d|3[0-2])|u?int(?:\d+)?)"
    r"((?:\[\d*\])*)"
)
_SIMPLE = {"bool": pa.bool_(), "string": pa.string()}
_WIDEST = 256


class _Type(Value):
    """A type as the selector spells it, and the column that holds its values."""

    canonical: str
    arrow: pa.DataType

    @property
    def is_hashed(self) -> bool:
        """Whether a topic holds only a hash of such a value."""
        return self.canonical in ("string", "bytes") or self.canonical[-1] in ")]"


class _Parameter(Value):
    name: str
    type: _Type
    indexed: bool


class Event(Value):
    """An event; `selector` is the first topic of its log entries."""

    signature: str
    selector: bytes
    indexed: tuple[_Parameter, ...]
    body: tuple[_Parameter, ...]

    @property
    def arrow(self) -> pa.DataType:
        """The type of decoded events: indexed parameters first, as the reference has them."""
        return pa.struct(
            [(p.name, pa.binary() if p.type.is_hashed else p.type.arrow) for p in self.indexed]
            + [(p.name, p.type.arrow) for p in self.body]
        )

    def decode(self, logs: Sequence[Log]) -> pa.Array:
        """One struct for each entry; raises `IngestError` for one that has another shape."""
        return pa.array([self._decoded(log) for log in logs], self.arrow)

    def _decoded(self, log: Log) -> dict[str, Any]:
        from eth_abi.abi import decode
        from eth_abi.exceptions import DecodingError

        topics = log.topics[1:]
        if len(topics) != len(self.indexed):
            raise self._other_shape(
                log, f"it has {len(topics)} indexed values instead of {len(self.indexed)}"
            )
        try:
            values = [
                topic if p.type.is_hashed else decode([p.type.canonical], topic)[0]
                for p, topic in zip(self.indexed, topics, strict=True)
            ]
            values += decode([p.type.canonical for p in self.body], log.data)
        except (DecodingError, OverflowError) as error:
            raise self._other_shape(log, str(error)) from None
        fields = zip(self.arrow, values, strict=True)
        return {field.name: _plain(value, field.type) for field, value in fields}

    def _other_shape(self, log: Log, reason: str) -> IngestError:
        return IngestError(
            f"{log.place} does not fit `signature`: {reason}",
            code="E0419",
            location=InDefinition.of("fetch", "signature"),
            notes=(
                f"the contract is 0x{log.address.hex()}",
                f"the signature is read as {self.signature}",
            ),
            help="other contracts may have an event of that name: name yours in `fetch.filter` "
            "(address = X'...'), or tell them apart by their topics (topic3 is null)",
        )


def parse_event(text: str) -> Event:
    """Read a signature; names of parameters may be left out. Raises `IngestError`."""
    match = _SIGNATURE.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError("it is not of the form Name(type name, ...)")
        parameters = [_parameter(part, n) for n, part in enumerate(_split(match.group(2)))]
        names = [each.name for each in parameters]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two parameters are called '{name}'")
    except ValueError as error:
        raise IngestError(
            f"'{text.strip()}' is not the signature of an event: {error}",
            code="E0417",
            location=InDefinition.of("fetch", "signature"),
            help="write it as the contract declares it, such as "
            "Transfer(address indexed from, address indexed to, uint256 value)",
        ) from None
    signature = f"{match.group(1)}({','.join(each.type.canonical for each in parameters)})"
    return Event(
        signature=signature,
        selector=_keccak(signature.encode()),
        indexed=tuple(each for each in parameters if each.indexed),
        body=tuple(each for each in parameters if not each.indexed),
    )


def _keccak(data: bytes) -> bytes:
    try:
        from eth_hash.auto import keccak
    except ImportError:
        raise missing_extra("ethereum", "sources of kind EthereumLogs") from None
    return bytes(keccak(data))


def _split(text: str) -> list[str]:
    """`text` at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if depth:
        raise ValueError("its parentheses do not match")
    parts.append(text[start:])
    return [part.strip() for part in parts] if text.strip() else []


def _parameter(text: str, number: int) -> _Parameter:
    type_, _, rest = _after_type(text)
    words = rest.split()
    indexed = words[:1] == ["indexed"]
    words = words[indexed:]
    if len(words) > 1 or not all(_NAME.fullmatch(word) for word in words):
        raise ValueError(f"'{text}' is not a parameter")
    return _Parameter(words[0] if words else f"param{number}", _type(type_), indexed)


def _after_type(text: str) -> tuple[str, str, str]:
    """The type that `text` begins with, a blank, and the rest."""
    end = text.rfind(")") + 1
    head, tail = text[:end], text[end:]
    suffix = re.match(r"\S*", tail)
    assert suffix is not None
    return head + suffix.group(), " ", tail[suffix.end() :]


def _type(text: str) -> _Type:
    if match := _TUPLE.fullmatch(text):
        members = [_parameter(part, n) for n, part in enumerate(_split(match.group(1)))]
        base = _Type(
            f"({','.join(each.type.canonical for each in members)})",
            pa.struct([(each.name, each.type.arrow) for each in members]),
        )
    elif match := _ELEMENTARY.fullmatch(text):
        base = _elementary(match.group(1))
    else:
        raise ValueError(f"'{text}' is not a type" if text else "a parameter is missing")
    arrow = base.arrow
    for _ in range(match.group(2).count("[")):
        arrow = pa.list_(arrow)
    return _Type(base.canonical + match.group(2), arrow)


def _elementary(name: str) -> _Type:
    if name in _SIMPLE:
        return _Type(name, _SIMPLE[name])
    number = re.fullmatch(r"(u?int)(\d*)", name)
    if number is None:
        return _Type(name, pa.binary())
    bits = int(number.group(2) or _WIDEST)
    if bits % 8 or not 0 < bits <= _WIDEST:
        raise ValueError(f"'{name}' is not a type")
    # Numbers that no column of whole numbers can hold are written as text, as the reference does.
    unsigned = number.group(1) == "uint"
    small = pa.uint64() if unsigned and bits == 64 else pa.int64()
    return _Type(f"{number.group(1)}{bits}", small if bits <= 64 else pa.string())


def _plain(value: Any, type_: pa.DataType) -> Any:
    """What `eth_abi` decoded, as the column wants it."""
    if pa.types.is_struct(type_):
        return {f.name: _plain(v, f.type) for f, v in zip(type_, value, strict=True)}
    if pa.types.is_list(type_):
        return [_plain(each, type_.value_type) for each in value]
    if pa.types.is_binary(type_) and isinstance(value, str):
        return bytes.fromhex(value.removeprefix("0x"))  # addresses are given as text
    if pa.types.is_string(type_):
        return str(value)
    return value
