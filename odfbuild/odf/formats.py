"""What JSON Schema cannot say of values and code checks: the formats of the schemas, by name.

These are the only rules by which a document is refused that the keywords of its schema let pass.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from odfbuild.odf.extra_attributes import extra_problem
from odfbuild.odf.identity import DatasetAlias, DatasetId, name_like, parse_ref
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value


class Format(Value):
    """Values of one form: its name in schemas, what it is in words, and what reads it.

    `parse` takes data of the type `plain`, and raises `ValueError` for another form; `nearest` is
    what was probably meant.
    """

    name: str
    words: str
    parse: Callable[[Any], Any]
    nearest: Callable[[str], str | None] = lambda _: None
    plain: type = str


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64 text") from None


def _name_in_ref(text: str) -> str | None:
    return None if text.startswith("did:") else name_like(text)


def _attributes(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if (problem := extra_problem(data)) is not None:
        raise ValueError(problem)
    return data


FORMATS = {
    "bytes": Format("base64", "base64 text", _base64),
    "multihash": Format("multihash", "a multihash", Multihash.parse),
    "id": Format("dataset-id", "a did:odf", DatasetId.parse),
    "ref": Format("dataset-ref", "the name or DID of a dataset", parse_ref, _name_in_ref),
    "alias": Format("dataset-alias", "the name of a dataset", DatasetAlias.parse, name_like),
    "timestamp": Format("date-time", "a date and time (RFC 3339)", Timestamp.parse),
    "open_map": Format("attributes", "an object", _attributes, plain=dict),
}
"""By their form on the wire."""
