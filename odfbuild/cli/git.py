"""`odfbuild git`: hooks, notes and commits of chains."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions

git = Group(help="Use chains with Git: hooks, commits, notes.")


@git.command()
def install(state: Context, as_json: JsonOptions) -> int:
    """Configure Git to show blocks as text and to record heads in notes on commits.

    Also installs a pre-commit hook that runs `odfbuild git check`.
    """
    from odfbuild.api.git.install import install as set_up
    from odfbuild.project.git.repository import repository

    config = state.config()
    with repository(config.root, "there is nothing to configure") as repo:
        changed = set_up(repo, config, _program(), _own_path())
    if as_json:
        state.console.data({"changed": list(changed)})
    else:
        state.console.result("\n".join(changed) or "Git is configured already.")
    return 0


@git.command()
def check(state: Context, as_json: JsonOptions) -> int:
    """Fail if a head is staged without its new blocks.

    `git commit -a` does that. After `odfbuild git install`, Git runs this check before each commit
    that contains a head.
    """
    from odfbuild.api.git.staged import check_staged

    check_staged(state.config(), state.workspace())
    state.console.show(
        as_json, lambda: {"complete": True}, lambda: "All staged heads have their blocks."
    )
    return 0


@git.command()
def anchor(state: Context, as_json: JsonOptions) -> int:
    """Record the heads of all datasets in a note on the current commit.

    After `odfbuild git install`, `apply` does this for the datasets that it commits.
    """
    from odfbuild.errors import PlanError
    from odfbuild.project.git.notes import NotAnchored
    from odfbuild.project.git.notes import anchor as note
    from odfbuild.project.git.repository import repository
    from odfbuild.wording import count

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
                help="make a commit first, or fix what Git reports",
            ) from None
        commit = repo.head.commit.hexsha
    if as_json:
        state.console.data({"commit": commit, "datasets": sorted(heads)})
    else:
        state.console.result(f"Noted the heads of {count(len(heads), 'dataset')} on {commit[:10]}.")
    return 0


@git.command()
def commit(
    state: Context,
    *,
    message: Annotated[
        str | None,
        typer.Option("--message", "-m", help="Commit message (default: a line for each dataset)."),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Also push the commit and the notes.")
    ] = False,
    remote: Annotated[
        str | None,
        typer.Option(help="Remote to push to (default: that of the branch, or origin)."),
    ] = None,
    git_branch: Annotated[
        str | None,
        typer.Option(
            help="Branch of Git to push to (default: that of the CI job, or the current one)."
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Commit the chains that apply changed, and nothing else.

    If others pushed first, the commit is rebased onto theirs. If they committed to the same
    datasets, nothing is pushed and the exit code is 5.
    """
    from odfbuild.api.git.publish import publish
    from odfbuild.report.publish import published_to_data, render_published

    done = publish(
        state.config(), state.workspace(), message, push=push, remote=remote, branch=git_branch
    )
    state.console.show(as_json, lambda: published_to_data(done), lambda: render_published(done))
    return 0


_Branch = Annotated[str, typer.Argument(metavar="BRANCH", help="Branch of datasets.")]
_Remote = Annotated[
    str | None, typer.Option(help="Remote (default: that of the branch of Git, or origin).")
]


@git.command()
def push(
    state: Context,
    branch: _Branch,
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the branch at the remote instead.")
    ] = False,
    remote: _Remote = None,
    as_json: JsonOptions,
) -> int:
    """Share a branch of datasets by a reference of its own, outside of pull requests.

    The reference is `refs/odfbuild/branches/BRANCH`. What is checked out and staged stays as it is.
    """
    from odfbuild.api.git.branch_reference import drop_branch, push_branch
    from odfbuild.report.publish import deleted_branch, render_pushed, shared_to_data

    if delete:
        found = drop_branch(state.config(), branch, remote)
        data, text = {"branch": branch, "deleted": found is not None}, deleted_branch(branch, found)
    else:
        done = push_branch(state.config(), state.workspace(), branch, remote)
        data, text = shared_to_data(done), render_pushed(done)
    state.console.show(as_json, lambda: data, lambda: text)
    return 0


@git.command()
def fetch(state: Context, branch: _Branch, *, remote: _Remote = None, as_json: JsonOptions) -> int:
    """Bring a branch of datasets that `git push` shared; no head moves.

    A remote without such a branch is no error.
    """
    from odfbuild.api.git.branch_reference import fetch_branch
    from odfbuild.report.publish import render_fetched, shared_to_data

    found = fetch_branch(state.config(), branch, remote)
    if as_json:
        state.console.data(shared_to_data(found) if found else {"branch": branch, "datasets": []})
    else:
        state.console.result(render_fetched(branch, found))
    return 0


def note_heads(state: Context, names: list[str]) -> None:
    """Note the heads of these datasets on the commit, where `git install` was run.

    A run is good without notes: what goes wrong here is said and stops nothing.
    """
    from odfbuild.project.git.repository import may_be_configured, repository

    config = state.config()
    # Notes are about heads; and GitPython takes time, which starts Git when it is imported.
    if config.branch is not None or not may_be_configured(config.root, "odfbuild"):
        return
    from odfbuild.errors import PlanError
    from odfbuild.project.git.notes import NotAnchored, is_anchoring
    from odfbuild.project.git.notes import anchor as note

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
