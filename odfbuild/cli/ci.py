"""`odfbuild ci`: what jobs of GitHub and GitLab need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions

ci = Group(help="Comment on pull and merge requests from a CI job.")


@ci.command()
def comment(
    state: Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Output of `plan --md`, or a file saved by `plan -o`."),
    ],
    as_json: JsonOptions,
) -> int:
    """Write a plan as a comment on the pull request of this CI job, or update it.

    Works in GitHub Actions, with GITHUB_TOKEN, and in GitLab CI, with ODFBUILD_GITLAB_TOKEN.
    """
    import os

    from odfbuild.api.git.comment import MARKER, put_comment, thread_of
    from odfbuild.errors import PlanError

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise PlanError(
            f"{file} cannot be read: {reason}",
            code="E0360",
            help=f"write it first, by `odfbuild plan --md > {file}` or `odfbuild plan -o {file}`, "
            f"or for records by `odfbuild diff --data --md > {file}`",
        ) from None
    if not text.startswith(MARKER):
        from odfbuild.report.plan.markdown import render_markdown
        from odfbuild.survey.approved import load_plan

        text = render_markdown(load_plan(file), owners=state.owners())
    done = put_comment(thread_of(os.environ), text)
    state.console.show(as_json, lambda: {"comment": done}, lambda: f"The comment was {done}.")
    return 0
