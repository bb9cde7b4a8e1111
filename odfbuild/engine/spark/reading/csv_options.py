"""Options of a CSV read step for Spark; unsupported options are refused."""

from __future__ import annotations

from odfbuild.engine.csv_records import folded_text
from odfbuild.engine.spark.results.hidden import CORRUPT
from odfbuild.engine.time_patterns import instead_of_format
from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStepCsv, ReadStepJson, ReadStepNdJson

NONE = "\0"
"""No character: text that holds it is refused."""


def csv_options(read: ReadStepCsv, dataset: str, folded: bool = False) -> dict[str, str]:
    """Spark's options for `read`; the text may be `folded`, as `csv_records` does.

    Without `escape` a quote inside quotes is written twice, as RFC 4180 says. An empty `quote`
    turns quotes off, as the specification says. Raises `IngestError` naming the option that is not
    supported.
    """
    refuse_formats(read, dataset)
    separator = one_character("separator", read.separator, ",", dataset)
    quote = NONE if read.quote == "" else one_character("quote", read.quote, '"', dataset)
    if read.escape is None:
        escape = quote
    elif read.escape == "":
        escape = NONE
    else:
        escape = one_character("escape", read.escape, "\\", dataset)
    if separator in (quote, escape):
        raise _unsupported(
            "separator", separator, dataset, "use another character than for `quote` and `escape`"
        )
    null = read.null_value or ""
    null = folded_text(null) if folded else null
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "header": "true" if read.header else "false",
        "sep": separator,
        "quote": quote,
        "escape": escape,
        "nullValue": null,
        "emptyValue": null,
        "enforceSchema": "true",
        "multiLine": "false",
        "columnPruning": "false",
        "preferDate": "true",
        "maxCharsPerColumn": "-1",
    }


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
        raise _unsupported(option, value, dataset, help_)


def one_character(option: str, value: str | None, default: str = "", dataset: str = "") -> str:
    """The value of an option that is one character; raises `IngestError` for anything else."""
    if value is None:
        return default
    if len(value) != 1 or not value.isascii() or value in "\r\n\0":
        help_ = "use a single ASCII character that is no line break"
        raise _unsupported(option, value, dataset, help_)
    return value


def _unsupported(option: str, value: str, dataset: str, help: str) -> IngestError:
    return IngestError(
        f"the value '{value}' of `read.{option}` is not supported",
        code="E0422",
        dataset=dataset,
        help=help,
    )
