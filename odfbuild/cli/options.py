"""Options and arguments that several verbs take, and what they ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfbuild.cli import complete
from odfbuild.cli.option_groups import Together
from odfbuild.errors import PlanError
from odfbuild.store.branches import Limit

if TYPE_CHECKING:
    from odfbuild.cli.console import Console
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.plan.changes.consent import Consent
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.store.claims import Waiting
    from odfbuild.survey.survey import PlanRequest


class Format(StrEnum):
    """Form of a verb's output."""

    text = "text"
    json = "json"


FORMAT_VARIABLE = "ODFBUILD_FORMAT"
_FORMS = ("text", "json", "md", "html", "yaml", "dot", "mermaid", "openlineage")


def _usual(forms: type[StrEnum]) -> Any:
    """The form when no option asks for one: the first, or the variable's where the verb knows it.

    `BadParameter` for a value of the variable that no verb knows.
    """

    def usual() -> StrEnum:
        wanted = os.environ.get(FORMAT_VARIABLE) or "text"
        if wanted not in _FORMS:
            known = ", ".join(_FORMS)
            raise typer.BadParameter(f"'{wanted}' is none of {known}", param_hint=FORMAT_VARIABLE)
        return forms(wanted) if wanted in forms.__members__ else next(iter(forms))

    return usual


def form_options(forms: type[StrEnum], *short: str) -> Together:
    """`--format` with these forms, and an option of its own for those that are `short`."""
    first = next(iter(forms))
    option = typer.Option(
        "--format",
        default_factory=_usual(forms),
        show_default=False,
        help=f"Output format (default: {FORMAT_VARIABLE}, or {first}).",
    )
    options: dict[str, tuple[Any, Any]] = {"format": (Annotated[forms, option], ...)}
    for name in short:
        flag = typer.Option(f"--{name}", help=f"Short for --format {name}.")
        options[f"as_{name}"] = (Annotated[bool, flag], False)

    def join(form: StrEnum, *given: bool) -> StrEnum:
        return next((forms(name) for name, on in zip(short, given, strict=True) if on), form)

    return Together(options, join)


def _json_options() -> Together:
    both = form_options(Format, "json")
    return Together(both.options, lambda *given: both.join(*given) is Format.json)


DetailOption = Annotated[bool, typer.Option("--full", help="Show all datasets and details.")]
JsonOptions = Annotated[bool, _json_options()]
"""Whether JSON was asked for."""
ApproveOption = Annotated[
    bool,
    typer.Option(
        "--auto-approve", "-y", envvar="ODFBUILD_AUTO_APPROVE", help="Do not ask for approval."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        envvar="ODFBUILD_JOBS",
        help="Number of datasets to run at once (default: number of cores).",
    ),
]
PublishOption = Annotated[
    bool,
    typer.Option(
        "--publish/--no-publish",
        envvar="ODFBUILD_PUBLISH",
        help="Push to repositories afterwards as `publish` in odfbuild.yaml says, or not.",
    ),
]
LockTimeoutOption = Annotated[
    float,
    typer.Option(
        "--lock-timeout",
        min=0,
        metavar="SECONDS",
        envvar="ODFBUILD_LOCK_TIMEOUT",
        help="Maximum time to wait for a lock held by another process.",
    ),
]
UncacheableOption = Annotated[
    bool,
    typer.Option(
        "--fetch-uncacheable",
        envvar="ODFBUILD_FETCH_UNCACHEABLE",
        help="Also read sources again that report no version to compare.",
    ),
]
_CONSENTS = ("rebuild", "correct", "forward", "delete", "rewrite", "read", "withdraw")
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="rebuild|correct|forward|delete|rewrite|read|withdraw:NAME",
        autocompletion=complete.consents(*_CONSENTS),
        envvar="ODFBUILD_ALLOW",
        help="Rebuild this derivative from the start, apply the changed query of this changelog to "
        "existing records, apply this changed query to new records only whatever onQueryChange "
        "says, delete this orphaned chain, replace this table that somebody else changed, let this "
        "dataset read more than the policies allow, or withdraw records that `retain` no longer "
        "keeps; rebuild:NAME+ and delete:NAME+ include all downstream datasets.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME|BLOCK",
        help="Show the state at a system time, a date, or the time of a block.",
    ),
]
DetailedExitcodeOption = Annotated[
    bool,
    typer.Option(
        "--detailed-exitcode",
        envvar="ODFBUILD_DETAILED_EXITCODE",
        help="Exit with 2 if there are changes, with 0 if not.",
    ),
]
DatasetArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", autocompletion=complete.datasets, help="Name of the dataset."
    ),
]
BranchArgument = Annotated[
    str,
    typer.Argument(metavar="BRANCH", autocompletion=complete.branches, help="Name of the branch."),
]
NewestOption = Annotated[
    int | None, typer.Option("--limit", "-n", min=1, help="Show only the newest blocks.")
]
SelectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SELECTION",
        autocompletion=complete.selections,
        help="Names or selections (default: all datasets).",
    ),
]
_SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        "-s",
        metavar="SELECTION",
        autocompletion=complete.selections,
        envvar="ODFBUILD_SELECT",
        help="Select datasets, such as '+name', 'tag:daily', 'state:modified+'.",
    ),
]
_ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="SELECTION",
        autocompletion=complete.selections,
        envvar="ODFBUILD_EXCLUDE",
        help="Exclude these datasets.",
    ),
]
_SelectorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--selector",
        metavar="NAME",
        autocompletion=complete.selectors,
        envvar="ODFBUILD_SELECTOR",
        help="Select by a named selector of odfbuild.yaml.",
    ),
]
SELECTING: dict[str, tuple[Any, Any]] = {
    "select": (_SelectOption, None),
    "exclude": (_ExcludeOption, None),
    "selector": (_SelectorOption, None),
}
"""The options that select datasets."""


def selection_of(
    datasets: list[str] | None,
    select: list[str] | None,
    exclude: list[str] | None,
    selector: list[str] | None,
) -> Selection:
    """The selection that these arguments and options ask for."""
    from odfbuild.plan.graph.selection import Selection

    named = (f"selector:{name}" for name in selector or ())
    return Selection(
        select=(*(datasets or ()), *(select or ()), *named), exclude=tuple(exclude or ())
    )


def selecting(argument: Any) -> dict[str, tuple[Any, Any]]:
    """The options that select datasets, and the argument that does, too."""
    return {"datasets": (argument, None), **SELECTING}


def _plan_or_selection(
    given: list[str] | None, *options: list[str] | None
) -> tuple[Path | None, Selection]:
    """A saved plan, if the first argument is a file, and what is selected."""
    first, *rest = given or [""]
    if first.endswith(".json") or Path(first).is_file():
        return Path(first), selection_of(rest, *options)
    return None, selection_of(given, *options)


SelectionOptions = Annotated["Selection", Together(selecting(SelectionArgument), selection_of)]
PlanOrSelection = Annotated[
    "tuple[Path | None, Selection]",
    Together(
        selecting(
            Annotated[
                list[str] | None,
                typer.Argument(
                    metavar="PLAN|SELECTION",
                    autocompletion=complete.selections,
                    help="A saved plan (default: make a new one), and names or selections.",
                ),
            ]
        ),
        _plan_or_selection,
    ),
]


LimitOptions = Annotated[
    "Limit | None",
    Together(
        {
            "sample": (
                Annotated[
                    str | None,
                    typer.Option(
                        "--sample",
                        metavar="PERCENT",
                        envvar="ODFBUILD_SAMPLE",
                        help="In a branch: read this part of the inputs, such as 10%.",
                    ),
                ],
                None,
            ),
            "since": (
                Annotated[
                    str | None,
                    typer.Option(
                        "--since",
                        metavar="TIME",
                        envvar="ODFBUILD_SINCE",
                        help="In a branch: read records of inputs from this event time on.",
                    ),
                ],
                None,
            ),
        },
        Limit.parse,
    ),
]
"""Which part of their inputs derivatives of a branch are computed over."""


def waiting(
    console: Console, lock_timeout: float, stopped: Callable[[], bool] = lambda: False
) -> Waiting:
    """Wait that long for datasets that another process works on, and say so."""
    from odfbuild.store.claims import Waiting

    def tell(held: Mapping[str, str]) -> None:
        name, holder = next(iter(held.items()))
        others = f" and {len(held) - 1} more" if len(held) > 1 else ""
        console.note(f"Waiting up to {lock_timeout:g} s for '{name}'{others}: {holder} works on it")

    return Waiting(seconds=lock_timeout, tell=tell, stopped=stopped)


def approved(console: Console, auto_approve: bool, question: str, refusal: str) -> bool:
    """Whether somebody wants what cannot simply be undone; asks on a terminal.

    `PlanError` E0334 where nobody can be asked: nothing is done without approval.
    """
    if auto_approve:
        return True
    if not console.interactive:
        raise PlanError(
            f"{refusal}: there is no terminal to ask on", code="E0334", help="add --auto-approve"
        )
    if console.confirm(question):
        return True
    console.note("Nothing was done.")
    return False


def may_overwrite(console: Console, files: Sequence[Path], auto_approve: bool) -> bool:
    """Whether files may be overwritten: Git has them as they are, or somebody agrees.

    `PlanError` E0334 as of `approved`.
    """
    from odfbuild.project.git.committed import not_committed
    from odfbuild.wording import count

    lost = [] if auto_approve or not files else not_committed(files)
    if not lost:
        return True
    console.note("These files would be overwritten, and no commit has them as they are:")
    for file in lost:
        console.note(f"  {file}")
    what = count(len(lost), "file")
    return approved(console, False, f"Overwrite {what}?", f"{what} would be overwritten")


def wishes_of(
    selection: Selection,
    fetch_uncacheable: bool = False,
    allow: list[str] | None = None,
    limit: Limit | None = None,
    refresh: bool = False,
) -> PlanRequest:
    """What these options ask of a plan."""
    from odfbuild.survey.survey import PlanRequest

    found = [_consent(text) for text in allow or ()]
    return PlanRequest(
        selection=selection,
        fetch_uncacheable=fetch_uncacheable,
        refresh=refresh,
        rebuilds=tuple(consent for what, consent in found if what == "rebuild"),
        corrections=tuple(consent for what, consent in found if what == "correct"),
        deletions=tuple(consent for what, consent in found if what == "delete"),
        forward=tuple(consent for what, consent in found if what == "forward"),
        rewrites=tuple(consent.name for what, consent in found if what == "rewrite"),
        reads=tuple(consent for what, consent in found if what == "read"),
        withdrawals=tuple(consent.name for what, consent in found if what == "withdraw"),
        of_branch=True,
        limit=limit,
    )


def _consent(text: str) -> tuple[str, Consent]:
    from odfbuild.plan.changes.consent import Consent

    what, _, name = text.partition(":")
    if what not in _CONSENTS or not name.strip("+"):
        raise typer.BadParameter(
            f"'{text}' is none of 'rebuild:NAME', 'rebuild:NAME+', 'correct:NAME', 'forward:NAME', "
            "'delete:NAME', 'delete:NAME+', 'rewrite:TABLE', 'read:NAME', 'withdraw:NAME'",
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
