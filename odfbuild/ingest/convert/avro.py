"""Records of an Avro file as NDJSON, by fastavro."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import IO, Any
from uuid import UUID

from odfbuild.errors import OdfbuildError, missing_extra
from odfbuild.ingest.convert.problems import unreadable, without_value


def lines_of(source: IO[bytes]) -> Iterator[str]:
    """A line for each record. Raises `OdfbuildError`."""
    try:
        import fastavro
    except ImportError:
        raise missing_extra("avro", "Avro files") from None
    try:
        for number, record in enumerate(fastavro.reader(source), 1):
            yield _text(record, number) + "\n"
    except (OdfbuildError, MemoryError):
        raise
    except Exception as error:  # Whatever a broken file leads to, the library does not say.
        raise unreadable(
            f"this is not a readable Avro file: {str(error) or type(error).__name__}",
            "fetch it again, or have whoever makes it correct it",
        ) from None


def _text(value: Any, number: int) -> str:
    match value:
        case dict():
            members = (
                f"{json.dumps(name, ensure_ascii=False)}:{_text(each, number)}"
                for name, each in value.items()
            )
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(_text(each, number) for each in value) + "]"
        case float() if not math.isfinite(value):
            raise without_value(
                f"record {number:,} has the number {value}, which JSON does not have",
                "have the source write null instead",
            )
        case Decimal():
            return format(value, "f")
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case datetime() | date() | time():
            return json.dumps(value.isoformat())
        case UUID():
            return json.dumps(str(value))
    return json.dumps(value, ensure_ascii=False)
