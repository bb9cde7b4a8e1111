"""Which values of the options of read steps are supported; whoever reads refuses others."""

from __future__ import annotations

import codecs

from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStepCsv, ReadStepJson, ReadStepNdJson
from odfbuild.sql.time_patterns import instead_of_format

_NOTATIONS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Codecs of Python that are no encodings of files; some lose lines in silence."""


def refuse_formats(read: ReadStepCsv | ReadStepJson | ReadStepNdJson, dataset: str) -> None:
    """Raise `IngestError` for date formats that are not supported."""
    for option, value in (
        ("dateFormat", read.date_format),
        ("timestampFormat", read.timestamp_format),
    ):
        check_format(option, value, dataset)


def check_format(option: str, value: str | None, dataset: str = "") -> None:
    """Raise `IngestError` for a format of dates or times that is not supported."""
    if value is not None and value.lower() != "rfc3339":
        help_ = f"leave `{option}` out, {instead_of_format(option, value)}"
        raise unsupported(option, value, dataset, help_)


def one_character(option: str, value: str | None, default: str = "", dataset: str = "") -> str:
    """The value of an option that is one character; raises `IngestError` for anything else."""
    if value is None:
        return default
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        help_ = "use a single ASCII character that is no line break"
        raise unsupported(option, value, dataset, help_)
    return value


def unsupported(option: str, value: str, dataset: str, help: str) -> IngestError:
    """The error for a value of an option that is not supported."""
    return IngestError(
        f"the value '{value}' of `read.{option}` is not supported",
        code="E0422",
        dataset=dataset,
        help=help,
    )


def codec_of(encoding: str | None, dataset: str, option: str = "read.encoding") -> str:
    """Python's name of an encoding; `IngestError` when `option` names none."""
    try:
        codec = codecs.lookup(encoding or "utf-8")
    except LookupError:
        codec = None
    is_text = codec is not None and getattr(codec, "_is_text_encoding", True)
    if codec is None or not is_text or codec.name in _NOTATIONS:
        raise IngestError(
            f"the value '{encoding}' of `{option}` is not supported",
            code="E0422",
            dataset=dataset,
            help="use the name of an encoding, such as utf-8, iso-8859-1, windows-1252 or utf-16",
        )
    return codec.name
