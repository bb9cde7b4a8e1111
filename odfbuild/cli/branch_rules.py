"""What each command does with `--branch`: every one has a rule, so that none ignores it.

docs/branches.md has the table of commands, which `tests/cli/branching/test_branch_of_every_verb.py`
holds to this one.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from odfbuild.cli.aliases import ALIASES
from odfbuild.errors import BranchError

if TYPE_CHECKING:
    from odfbuild.cli.context import Context


class Rule(Enum):
    """What a command does with a branch."""

    BEGINS = "works in the branch, which need not exist yet"
    READS = "reads datasets as they are in the branch"
    APPENDS = "appends to the branch"
    HEADS = "works on heads"
    WHOLE = "works on the whole project"
    PROMOTES = "takes the name of the branch as its argument"
    FILES = "does not read datasets"


_COMMANDS = {
    Rule.BEGINS: ("plan, apply, pull",),
    Rule.READS: (
        "status, ls, graph, explain, diff, drift, render, log, blame, tail, sql, corrections",
        "freshness, decode, test, verify, provenance, lint, validate, lsp, import, new",
        "docs build, watermark show, watermark late, storage status, storage push, storage pull",
        "docs serve, key status, key export, push, shell, engine start, passport",
    ),
    Rule.APPENDS: ("ingest, reset, watermark set",),
    Rule.HEADS: (
        "serve, engine deprecate, key import, table ls, table show, table rebuild, table gc",
        "git install, git check, git anchor, git commit",
        "git push, git fetch, erase, key rotate",
    ),
    Rule.WHOLE: (
        "gc, lock list, lock break, doctor, branch list, branch show, branch delete",
        "chains move",
    ),
    Rule.PROMOTES: ("promote",),
    Rule.FILES: (
        "init, fmt, show, schema, convert, migrate definitions, migrate dbt, version, ci comment",
        "engine serve, engine status, engine stop, source create, source drop, source status",
    ),
}

RULES = {
    command: rule for rule, lines in _COMMANDS.items() for command in ", ".join(lines).split(", ")
}


def check_branch(ctx: Any) -> None:
    """Raise E1102 or E1103 when the command cannot work in the branch that was given."""
    state: Context | None = ctx.obj
    if state is None or state.given.branch is None:
        return
    command = command_of(ctx)
    rule = RULES[command]
    if rule is Rule.BEGINS:
        return
    if rule in (Rule.READS, Rule.APPENDS):
        state.workspace().check_branch()
        return
    by_variable = ctx.find_root().get_parameter_source("branch").name == "ENVIRONMENT"
    if rule is Rule.FILES and by_variable:
        return  # what is set for a whole job means other commands of it
    raise BranchError(
        f"`odfbuild {command}` does not work in a branch",
        code="E1103",
        notes=(f"it {rule.value}",),
        help=_HELP.get(command)
        or ("unset ODFBUILD_BRANCH for this command" if by_variable else "leave --branch out"),
    )


_HELP = {
    "git push": "leave --branch out; the argument names the branch",
    "git fetch": "leave --branch out; the argument names the branch",
    "git commit": "leave --branch out; `--git-branch` names the branch of Git to push to",
}


_OFFLINE = ("plan", "validate", "lint", "fmt", "git check")
"""Commands that are safe on pull requests of anybody: a project must not make them connect."""


def keep_offline(ctx: Any) -> None:
    """Let a command that uses no network read no blocks from a storage either."""
    state: Context | None = ctx.obj
    if state is None or ctx.params.get("refresh") or command_of(ctx) not in _OFFLINE:
        return
    ctx.obj = replace(state, given=replace(state.given, offline=True))


def command_of(ctx: Any) -> str:
    """The whole name of the command that is called, such as `docs build`."""
    verb, *rest = ctx.command_path.split()[1:]
    return " ".join((ALIASES.get(verb, verb), *rest))
