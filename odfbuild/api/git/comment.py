"""One comment on the pull or merge request of a CI job, updated in place.

The comment is found again by its first line, a hidden marker. Sources: the REST interfaces "Issue
comments" of GitHub and "Notes" of merge requests of GitLab.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import EnvironmentProblem, PlanError
from odfbuild.values import Value

if TYPE_CHECKING:
    import httpx

MARKER = "<!-- odfbuild:"
_PAGE = 100


class Thread(Value, kw_only=True):
    """Where comments of a request are listed, and how one of them is changed.

    `listing` is the address of all comments; one of them has the address `one`/ID.
    """

    listing: str
    one: str
    change: str
    headers: Mapping[str, str]


def thread_of(environment: Mapping[str, str]) -> Thread:
    """The request that this CI job runs for; `PlanError` E0370 when there is none to be seen."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return _of_github(environment)
    if environment.get("GITLAB_CI") == "true":
        return _of_gitlab(environment)
    raise _nowhere(
        "this job runs neither on GitHub nor on GitLab",
        "`odfbuild plan --md` prints the text for any other service",
    )


def put_comment(thread: Thread, text: str) -> str:
    """Write `text` as comment, over the one with the same marker; `created` or `updated`.

    `EnvironmentProblem` E0371 when the service refuses or cannot be reached.
    """
    import httpx

    marker = text.partition("\n")[0]
    try:
        with httpx.Client(headers=dict(thread.headers), timeout=30) as client:
            for comment in _comments(client, thread.listing):
                if str(comment["body"]).partition("\n")[0].strip() == marker:
                    address = f"{thread.one}/{comment['id']}"
                    _sent(client, thread.change, address, {"body": text})
                    return "updated"
            _sent(client, "POST", thread.listing, {"body": text})
            return "created"
    except httpx.HTTPError as error:
        raise _refused(f"{error or type(error).__name__}") from None


def _of_github(environment: Mapping[str, str]) -> Thread:
    try:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text("utf-8"))
        number = event["pull_request"]["number"]
    except (KeyError, OSError, ValueError, TypeError):
        raise _nowhere(
            "this workflow does not run for a pull request", "run it `on: pull_request`"
        ) from None
    token = environment.get("GITHUB_TOKEN")
    if not token:
        raise _nowhere(
            "there is no token to comment with",
            "give the step `env: {GITHUB_TOKEN: ${{ github.token }}}` and the job the permission "
            "`pull-requests: write`",
        )
    base = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}/issues"
    return Thread(
        listing=f"{base}/{number}/comments",
        one=f"{base}/comments",
        change="PATCH",
        headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
    )


def _of_gitlab(environment: Mapping[str, str]) -> Thread:
    number = environment.get("CI_MERGE_REQUEST_IID")
    if not number:
        raise _nowhere(
            "this pipeline does not run for a merge request",
            'run the job with `rules: [{if: $CI_PIPELINE_SOURCE == "merge_request_event"}]`',
        )
    token = environment.get("ODFBUILD_GITLAB_TOKEN")
    if not token:
        raise _nowhere(
            "there is no token to comment with",
            "make a project access token with the scope `api`, and give it to the job as the "
            "variable ODFBUILD_GITLAB_TOKEN",
        )
    project = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}"
    notes = f"{project}/merge_requests/{number}/notes"
    return Thread(listing=notes, one=notes, change="PUT", headers={"PRIVATE-TOKEN": token})


def _comments(client: httpx.Client, listing: str) -> Iterator[dict[str, Any]]:
    page = 1
    while True:
        address = f"{listing}?per_page={_PAGE}&page={page}"
        found = _sent(client, "GET", address, None).json()
        yield from found
        if len(found) < _PAGE:
            return
        page += 1


def _sent(
    client: httpx.Client, method: str, address: str, body: dict[str, str] | None
) -> httpx.Response:
    answer = client.request(method, address, json=body)
    if answer.is_error:
        raise _refused(f"{method} {address} was answered with {answer.status_code}")
    return answer


def _refused(reason: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the comment was not written: {reason}",
        code="E0371",
        help="check the permissions of the token and that the service answers; the plan itself "
        "is fine",
    )


def _nowhere(message: str, help_: str) -> PlanError:
    return PlanError(message, code="E0370", help=help_)
