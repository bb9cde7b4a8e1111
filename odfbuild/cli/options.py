"""Options and arguments that several verbs take, and what they ask for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.plan.changes.consent import Consent
    from odfbuild.survey.survey import PlanRequest


class Format(StrEnum):
    """Form of a verb's output."""

    text = "text"
    json = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", envvar="ODFBUILD_FORMAT", help="Form of the output.")
]
UncacheableOption = Annotated[
    bool,
    typer.Option(
        "--fetch-uncacheable",
        envvar="ODFBUILD_FETCH_UNCACHEABLE",
        help="Read sources again that give nothing to compare with.",
    ),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="rebuild|correct|delete:NAME",
        envvar="ODFBUILD_ALLOW",
        help="Compute this derivative again from the start, correct the records of this changelog "
        "by its changed query now, or delete this chain that nothing defines any more; "
        "rebuild and delete take NAME+, with its readers.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME|BLOCK",
        help="As it was committed then: a system time, a date, or when a block was committed.",
    ),
]
DetailedExitcodeOption = Annotated[
    bool,
    typer.Option(
        "--detailed-exitcode",
        envvar="ODFBUILD_DETAILED_EXITCODE",
        help="Exit with 2 when there is something to report, 0 when there is not.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", autocompletion=complete.datasets, help="Name of the dataset."
    ),
]
SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTION]...",
        autocompletion=complete.selections,
        help="Names or selections (default: all datasets).",
    ),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        "-s",
        metavar="SELECTION",
        autocompletion=complete.selections,
        envvar="ODFBUILD_SELECT",
        help="Only these datasets, as in '+name', 'tag:daily', 'state:modified+'.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="SELECTION",
        autocompletion=complete.selections,
        envvar="ODFBUILD_EXCLUDE",
        help="Not these datasets.",
    ),
]
SelectorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--selector",
        metavar="NAME",
        autocompletion=complete.selectors,
        envvar="ODFBUILD_SELECTOR",
        help="Only the datasets of this selector of odfbuild.yaml.",
    ),
]


def selection_of(
    select: list[str] | None,
    exclude: list[str] | None,
    selector: list[str] | None,
    datasets: list[str] | None = None,
) -> Selection:
    """The selection that these options ask for, and arguments where a verb takes them."""
    from odfbuild.graph.selection import Selection

    named = (f"selector:{name}" for name in selector or ())
    return Selection(
        select=(*(datasets or ()), *(select or ()), *named), exclude=tuple(exclude or ())
    )


def wishes_of(
    selection: Selection, fetch_uncacheable: bool = False, allow: list[str] | None = None
) -> PlanRequest:
    """What these options ask of a plan."""
    from odfbuild.survey.survey import PlanRequest

    found = [_consent(text) for text in allow or ()]
    return PlanRequest(
        selection=selection,
        fetch_uncacheable=fetch_uncacheable,
        rebuilds=tuple(consent for what, consent in found if what == "rebuild"),
        corrections=tuple(consent for what, consent in found if what == "correct"),
        deletions=tuple(consent for what, consent in found if what == "delete"),
    )


def _consent(text: str) -> tuple[str, Consent]:
    from odfbuild.plan.changes.consent import Consent

    what, _, name = text.partition(":")
    if what not in ("rebuild", "correct", "delete") or not name.strip("+"):
        raise typer.BadParameter(
            f"'{text}' is none of 'rebuild:NAME', 'rebuild:NAME+', 'correct:NAME', 'delete:NAME', "
            "'delete:NAME+'",
            param_hint="--allow",
        )
    return what, Consent.parse(name)


def parse_time(text: str, parameter: str) -> Timestamp:
    """The time in `text`; wrong usage of `parameter` when it is not RFC 3339."""
    from odfbuild.odf.timestamp import Timestamp

    try:
        return Timestamp.parse(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not a date and time of RFC 3339, such as 2026-01-31T08:00:00Z",
            param_hint=parameter,
        ) from None
