"""Options of a CSV read step for Spark; unsupported options are refused."""

from __future__ import annotations

from odfbuild.engine.csv_records import folded_text
from odfbuild.engine.read_options import one_character, refuse_formats, unsupported
from odfbuild.engine.spark.results.hidden import CORRUPT
from odfbuild.odf.model import ReadStepCsv

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
        raise unsupported(
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
