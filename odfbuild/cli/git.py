"""`odfbuild git`: what odfbuild and Git do for each other."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions

git = Group(help="Connect the chains with Git: hooks, commits, notes on heads.")


@git.command()
def install(context: typer.Context, as_json: JsonOptions) -> int:
    """Set the repository up to show blocks as text and to note heads on commits.

    Before each commit Git asks whether heads come with their blocks (`odfbuild git check`).
    """
    from odfbuild.gitops.install import install as set_up
    from odfbuild.project.git.repository import repository

    state: Context = context.obj
    config = state.config()
    with repository(config.root, "there is nothing to set up") as repo:
        changed = set_up(repo, config, _program(), _own_path())
    if as_json:
        state.console.data({"changed": list(changed)})
    else:
        state.console.result("\n".join(changed) or "Everything was set up already.")
    return 0


@git.command()
def check(context: typer.Context, as_json: JsonOptions) -> int:
    """Refuse heads that are staged without their new blocks.

    `git commit -a` stages them so. After `odfbuild git install`, Git runs this before each commit
    that has a head in it.
    """
    from odfbuild.gitops.staged import check_staged

    state: Context = context.obj
    check_staged(state.config(), state.workspace())
    if as_json:
        state.console.data({"complete": True})
    else:
        state.console.result("Every head is staged with its blocks.")
    return 0


@git.command()
def anchor(context: typer.Context, as_json: JsonOptions) -> int:
    """Note the heads of all datasets on the commit that is checked out.

    `apply` does so by itself for what it commits, once `odfbuild git install` was run.
    """
    from odfbuild.errors import PlanError
    from odfbuild.project.git.notes import NotAnchored
    from odfbuild.project.git.notes import anchor as note
    from odfbuild.project.git.repository import repository
    from odfbuild.wording import count

    state: Context = context.obj
    config = state.config()
    heads = {name: head.decode() for name, head in state.workspace().heads().items()}
    purpose = "there is no commit to note heads on"
    with repository(config.root, purpose) as repo:
        try:
            note(repo, config.qualified_name, heads)
        except NotAnchored as error:
            raise PlanError(
                f"the heads were not noted: {error}",
                code="E0343",
                help="make a commit first, or mend what Git says",
            ) from None
        commit = repo.head.commit.hexsha
    if as_json:
        state.console.data({"commit": commit, "datasets": sorted(heads)})
    else:
        state.console.result(f"Noted the heads of {count(len(heads), 'dataset')} on {commit[:10]}.")
    return 0


@git.command()
def commit(
    context: typer.Context,
    *,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", help="Message (default: what became of each dataset)."),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Push the commit and the notes on heads, too.")
    ] = False,
    remote: Annotated[
        str | None,
        typer.Option(help="Push to this remote (default: of the branch, or origin)."),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(help="Push to this branch (default: of the CI job, or the one checked out)."),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Commit the chains that apply changed, and nothing else.

    When others pushed first, the commit goes behind theirs. When they moved one of the same
    datasets, nothing is pushed and the exit code is 5.
    """
    from odfbuild.gitops.publish import publish
    from odfbuild.report.publish import published_to_data, render_published

    state: Context = context.obj
    done = publish(
        state.config(), state.workspace(), message, push=push, remote=remote, branch=branch
    )
    if as_json:
        state.console.data(published_to_data(done))
    else:
        state.console.result(render_published(done))
    return 0


def note_heads(state: Context, names: list[str]) -> None:
    """Note the heads of these datasets on the commit, where `git install` was run.

    A run is good without notes: what goes wrong here is said and stops nothing.
    """
    from odfbuild.errors import PlanError
    from odfbuild.project.git.notes import NotAnchored, is_anchoring
    from odfbuild.project.git.notes import anchor as note
    from odfbuild.project.git.repository import repository

    config = state.config()
    try:
        with repository(config.root, "nothing is noted") as repo:
            if is_anchoring(repo) and repo.head.is_valid():
                heads = state.workspace().heads()
                note(repo, config.qualified_name, {name: heads[name].decode() for name in names})
    except PlanError:
        return  # there is no Git here
    except NotAnchored as error:
        state.console.note(f"The heads were not noted on the commit: {error}")


def _program() -> str:
    import shlex
    import shutil

    if shutil.which("odfbuild"):
        return "odfbuild"
    return shlex.quote(_own_path())


def _own_path() -> str:
    """The program beside the Python that runs, for hooks that know of no virtual environment."""
    import sys
    from pathlib import Path

    return str(Path(sys.executable).with_name("odfbuild"))
