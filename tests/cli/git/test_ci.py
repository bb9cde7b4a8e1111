"""Jobs of GitHub and GitLab: summary, outputs, annotations, a comment that is kept up to date."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from odfbuild.errors import Errors, Location, ProjectError
from odfbuild.report.github import ANNOTATIONS, error_commands, outputs
from tests.apply.in_process import Program
from tests.apply.tiny import NO_JVM, Tiny
from tests.cli.clones import git, identify, share
from tests.cli.service import Service

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "checkout" / "data project")


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(tiny.root, monkeypatch, capsys)


@pytest.fixture
def github(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The environment of a step of a workflow; the files that it reads afterwards."""
    files = {name: tmp_path / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for name, file in files.items():
        file.write_text("")
        monkeypatch.setenv(name, str(file))
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(tiny.root.parent),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REPOSITORY": "ann/flights",
        "GITHUB_TOKEN": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    return files


@pytest.fixture
def service() -> Iterator[Service]:
    started = Service()
    yield started
    started.server.shutdown()
    started.server.server_close()


def outputs_in(file: Path) -> dict[str, str]:
    found = re.findall(r"^(\w+)<<(\S+)\n(.*?)\n?\2$", file.read_text(), re.MULTILINE | re.DOTALL)
    return {name: value for name, _, value in found}


def test_a_plan_is_the_summary_of_its_step_and_gives_outputs(
    github: dict[str, Path], odfbuild: Program
) -> None:
    shown = odfbuild.ok("plan", "-o", "plan.json").out
    saved = json.loads((odfbuild.root / "plan.json").read_text())
    summary = github["GITHUB_STEP_SUMMARY"].read_text()
    assert summary.startswith("<!-- odfbuild:tiny:default -->\n### Plan: 2 to create")
    assert outputs_in(github["GITHUB_OUTPUT"]) == {
        "changes": "true",
        "plan_digest": saved["plan_digest"],
        "plan_file": str(odfbuild.root / "plan.json"),
    }
    assert "::" not in shown.replace("sha256:", "")


def test_nothing_of_this_happens_elsewhere(
    github: dict[str, Path], odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    odfbuild.ok("plan")
    (odfbuild.root / "datasets" / "root.yaml").write_text("kind: [")
    assert "::error" not in odfbuild("plan").err
    assert [file.read_text() for file in github.values()] == ["", ""]


def test_errors_are_marked_at_their_places_in_the_checkout(
    github: dict[str, Path], odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = odfbuild.root / "datasets" / "derived.yaml"
    file.write_text(file.read_text().replace("engine: spark", "engine: spark\n        motor: v8"))
    file.with_name("root.yaml").write_text("kind: [")
    said = odfbuild("validate")
    assert said.code == 1
    marked = [line for line in said.err.splitlines() if line.startswith("::error")]
    assert len(marked) == 2
    place = "file=data project/datasets/derived.yaml,line=14,col=9,title=E0104"
    assert marked[0].startswith(f"::error {place}::unknown key 'motor'%0A")
    # The same from the top of the checkout.
    monkeypatch.chdir(odfbuild.root.parent)
    again = Program(odfbuild.root.parent, monkeypatch, odfbuild.capsys)
    lines = again("-C", "data project", "validate").err.splitlines()
    assert [line for line in lines if line.startswith("::error")] == marked


def test_refused_datasets_are_marked_too(github: dict[str, Path], odfbuild: Program) -> None:
    (odfbuild.root / "data" / "1.csv").unlink()
    said = odfbuild("plan")
    assert said.code == 1
    assert "::error file=data project/datasets/root.yaml,line=" in said.err


def test_of_too_many_errors_the_first_are_marked_and_the_rest_counted() -> None:
    many = Errors([ProjectError(f"number {n}", "E0104", Location("a.yaml", n)) for n in range(30)])
    lines = error_commands([many])
    assert len(lines) == ANNOTATIONS
    assert lines[0] == "::error file=a.yaml,line=0,title=E0104::number 0"
    assert lines[-1] == "::error::21 more errors: see the log"


def test_values_cannot_pass_for_commands_or_outputs() -> None:
    error = ProjectError("50%\n::warning::no", "E0104", Location("a,b:c.yaml", 1))
    assert error_commands([error]) == [
        "::error file=a%2Cb%3Ac.yaml,line=1,title=E0104::50%25%0A::warning::no"
    ]
    text = outputs({"digest": "x\nchanges=true"})
    assert re.fullmatch(r"digest<<(end-[-0-9a-f]{36})\nx\nchanges=true\n\1\n", text)


def test_a_comment_is_created_once_and_then_updated(
    github: dict[str, Path], odfbuild: Program, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", service.address)
    # It is on the second page of the comments.
    service.comments = [{"id": n, "body": f"comment {n}"} for n in range(120)]
    (odfbuild.root / "plan.md").write_text(odfbuild.ok("plan", "--md").out)
    assert odfbuild.ok("ci", "comment", "plan.md").out == "The comment was created.\n"
    assert len(service.comments) == 121
    Tiny(odfbuild.root).derive("other", "SELECT event_time, id, value FROM source")
    odfbuild.ok("plan", "-o", "plan.json")
    assert odfbuild.ok("ci", "comment", "plan.json").out == "The comment was updated.\n"
    assert len(service.comments) == 121
    assert "### Plan: 3 to create" in service.comments[-1]["body"]
    posted, patched = (each for each in service.asked if each[0] != "GET")
    assert posted == ("POST", "/repos/ann/flights/issues/7/comments", "Bearer secret")
    assert patched == ("PATCH", "/repos/ann/flights/issues/comments/1120", "Bearer secret")


def test_a_comment_on_a_merge_request_of_gitlab(
    odfbuild: Program, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "",
        "GITLAB_CI": "true",
        "CI_API_V4_URL": service.address,
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "3",
        "ODFBUILD_GITLAB_TOKEN": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    odfbuild.ok("plan", "-o", "plan.json")
    assert odfbuild.ok("ci", "comment", "plan.json").out == "The comment was created.\n"
    assert odfbuild.ok("ci", "comment", "plan.json").out == "The comment was updated.\n"
    assert [each for each in service.asked if each[0] != "GET"] == [
        ("POST", "/projects/12/merge_requests/3/notes", "secret"),
        ("PUT", "/projects/12/merge_requests/3/notes/1000", "secret"),
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"GITHUB_ACTIONS": ""}, "E0370"),
        ({"GITHUB_EVENT_PATH": "/nowhere"}, "E0370"),
        ({"GITHUB_TOKEN": ""}, "E0370"),
        ({"GITHUB_ACTIONS": "", "GITLAB_CI": "true"}, "E0370"),
        ({"GITHUB_ACTIONS": "", "GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "1"}, "E0370"),
        ({"GITHUB_API_URL": "http://127.0.0.1:1"}, "E0371"),
    ],
)
def test_without_a_request_or_a_service_nothing_is_written(
    github: dict[str, Path],
    odfbuild: Program,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    code: str,
) -> None:
    odfbuild.ok("plan", "-o", "plan.json")
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    said = odfbuild("ci", "comment", "plan.json")
    assert said.code == 1
    assert f"error[{code}]" in said.err
    assert "secret" not in said.out + said.err


def test_a_refusal_of_the_service_is_told_without_the_token(
    github: dict[str, Path], odfbuild: Program, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", service.address)
    service.refuse = 403
    odfbuild.ok("plan", "-o", "plan.json")
    said = odfbuild("ci", "comment", "plan.json")
    assert said.code == 1
    assert "error[E0371]: the comment was not written: GET " in said.err
    assert "was answered with 403" in said.err
    assert "secret" not in said.err


def run_action(environment: dict[str, str], checkout: Path) -> subprocess.CompletedProcess[str]:
    """The step of the action that runs odfbuild, in a shell, as GitHub would."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "run")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=checkout,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_plans_and_comments(
    github: dict[str, Path],
    tiny: Tiny,
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {
        "COMMAND": "plan",
        "ARGUMENTS": "--select root",
        "PROJECT": "data project",
        "COMMENT": "true",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_API_URL": service.address,
    }
    done = run_action(environment, tiny.root.parent)
    assert done.returncode == 0, done.stderr
    assert [c["body"].splitlines()[1] for c in service.comments] == [
        "### Plan: 1 to create, 0 to change, 1 to run, 0 to reset, 0 to delete"
    ]
    assert outputs_in(github["GITHUB_OUTPUT"])["plan_file"] == str(tmp_path / "odfbuild-plan.json")
    assert run_action(environment | {"COMMAND": "destroy"}, tiny.root.parent).returncode == 64


@pytest.mark.spark
def test_the_action_builds_a_pull_request_in_a_branch_and_promotes_it_after_the_merge(
    github: dict[str, Path], tiny: Tiny, service: Service, tmp_path: Path
) -> None:
    checkout, origin = tiny.root.parent, tmp_path / "origin.git"
    (checkout / ".gitignore").write_text(".odfbuild*\n")
    share(tiny, "../../storage")
    git(checkout, "init", "-q", "-b", "main")
    identify(checkout)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "Definitions")
    git(tmp_path, "clone", "-q", "--bare", str(checkout), str(origin))
    git(checkout, "remote", "add", "origin", str(origin))
    git(checkout, "checkout", "-q", "-b", "topic")
    environment = {
        "COMMAND": "branch",
        "ARGUMENTS": "",
        "PROJECT": "data project",
        "BRANCH": "pr-7",
        "COMMENT": "true",
        "COMMIT": "true",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_API_URL": service.address,
        "GITHUB_HEAD_REF": "topic",
    }
    done = run_action(environment, checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    bodies = [each["body"] for each in service.comments]
    assert [each.splitlines()[0] for each in bodies] == [
        "<!-- odfbuild:tiny:default -->",
        "<!-- odfbuild:tiny:default:data -->",
    ]
    assert "### Plan: 2 to create" in bodies[0]
    assert "| `derived` | 3 added" in bodies[1]
    reference = "refs/odfbuild/branches/pr-7"
    pushed = git(origin, "ls-tree", "-r", "--name-only", reference).splitlines()
    assert [each for each in pushed if "/refs/" in each] == [
        "data project/chains/derived/refs/pr-7",
        "data project/chains/root/refs/pr-7",
    ]
    git(checkout, "push", "-q", "origin", "topic")
    assert "chains" not in git(origin, "ls-tree", "-r", "--name-only", "topic")
    # The next commit of the pull request goes on from there, also in a fresh checkout.
    again = tmp_path / "again"
    git(tmp_path, "clone", "-q", "-b", "topic", str(origin), str(again))
    tip = git(origin, "rev-parse", reference)
    done = run_action(environment, again)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "### No changes" in service.comments[0]["body"]
    assert git(origin, "rev-parse", reference) == tip

    # Another machine, after the merge.
    merged = tmp_path / "merged"
    git(tmp_path, "clone", "-q", str(origin), str(merged))
    identify(merged)
    git(merged, "merge", "-q", "--no-ff", "-m", "Merge it", "origin/topic")
    git(merged, "push", "-q")
    promote = {**environment, "COMMAND": "promote", "GITHUB_HEAD_REF": "", **NO_JVM}
    done = run_action(promote, merged)
    assert done.returncode == 0, done.stdout + done.stderr
    pushed = git(origin, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert [each for each in pushed if "/refs/" in each] == [
        "data project/chains/derived/refs/head",
        "data project/chains/root/refs/head",
    ]
    assert git(origin, "for-each-ref", reference) == ""
    # A pull request that changed no dataset has no branch; one without a number has no name.
    assert run_action(promote, merged).returncode == 0
    assert run_action({**promote, "BRANCH": ""}, merged).returncode == 64


@pytest.mark.spark
def test_the_action_checks_definitions_and_marks_what_lint_finds(
    github: dict[str, Path], tiny: Tiny
) -> None:
    environment = {"COMMAND": "check", "ARGUMENTS": "", "PROJECT": "data project"}
    done = run_action(environment, tiny.root.parent)
    assert done.returncode == 0, done.stderr
    assert "2 datasets defined, all valid; 1 query was checked by the engine." in done.stdout
    assert (
        "::warning file=data project/datasets/root.yaml,line=4,col=3,title=L011::"
        "'root' has no description%0A"
    ) in done.stderr
    root = tiny.root / "datasets" / "root.yaml"
    root.write_text(root.read_text().replace("kind: Ledger", 'kind:   "Ledger"'))
    assert run_action(environment, tiny.root.parent).returncode == 1
    assert run_action(environment | {"ARGUMENTS": "--strict"}, tiny.root.parent).returncode == 1


def test_what_the_action_gives_is_what_the_plan_writes(
    github: dict[str, Path], odfbuild: Program
) -> None:
    odfbuild.ok("plan")
    assert set(ACTION["outputs"]) == set(outputs_in(github["GITHUB_OUTPUT"]))


def test_jobs_of_gitlab_and_hooks_name_verbs_that_there_are(odfbuild: Program) -> None:
    jobs = yaml.safe_load((ROOT / "templates" / "ci" / "gitlab.yml").read_text())
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    lines = [line for job in jobs.values() for line in job.get("script", [])]
    lines += [hook["entry"] for hook in hooks]
    verbs = {verb for line in lines for verb in re.findall(r"odfbuild ([a-z]+)", line)}
    assert {"plan", "ci", "apply", "validate"} <= verbs
    for verb in verbs:
        assert odfbuild(verb, "--help").code == 0


def test_jobs_that_apply_note_heads_on_the_commit_that_was_merged() -> None:
    jobs = yaml.safe_load((ROOT / "templates" / "ci" / "gitlab.yml").read_text())
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "run")
    for script in (step["run"], "\n".join(jobs[".odfbuild-apply"]["script"])):
        setting, _, rest = script.partition("config odfbuild.notes true")
        assert "git" in setting.splitlines()[-1]
        assert "apply --auto-approve" in rest
        assert "git commit --push" in rest
