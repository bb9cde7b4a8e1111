"""No text of a pull request is a command to the runner of GitHub Actions."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.cli.runner import Guarded, harmless, harmless_json
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.cli.real import BINARY, ENVIRONMENT

FORGED = (
    "a\n::set-output name=plan_digest::x\n \u00ad::add-mask::b\r\u2003::stop-commands::t"
    " ##[add-mask]c"
)
OWN = re.compile(
    r"::(error|warning) (file=[^:,]+,(line=\d+,(col=\d+,)?)?)?title=[EL]\d+::|::error::"
)
SIGNS = st.text(alphabet="::##[[a \t\n\r\u200b\u00adé", max_size=12)


def commands(text: str) -> list[str]:
    """Lines that a runner obeys, if characters beyond ASCII have no width for it."""
    lines = re.split("[\r\n]", "".join(sign for sign in text if sign.isascii()))
    return [line for line in lines if line.strip().startswith("::") or "##[" in line]


@given(st.lists(SIGNS, max_size=6))
def test_no_line_is_a_command_in_however_many_parts_it_is_written(parts: list[str]) -> None:
    stream = io.StringIO()
    guarded = Guarded(stream)
    for each in parts:
        guarded.write(each)
    written = stream.getvalue()
    assert not commands(written)
    assert written == harmless("".join(parts)) == harmless(written)
    assert written.replace(" ", "") == "".join(parts).replace(" ", "")


@given(st.lists(SIGNS))
def test_json_keeps_its_values(values: list[str]) -> None:
    os.environ["GITHUB_ACTIONS"] = "true"
    try:
        text = harmless_json(json.dumps(values, indent=2))
    finally:
        del os.environ["GITHUB_ACTIONS"]
    assert json.loads(text) == values
    assert not commands(text)
    assert harmless(text) == text


@pytest.fixture
def forged(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A pull request whose texts and names of files are commands."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = json.dumps(FORGED)
    datasets = tiny.root / "datasets"
    (datasets / "x.yaml").write_text(f"kind: {said}\n")
    (datasets / "n\n::error::y.yaml").write_text("kind: [")
    text = (datasets / "root.yaml").read_text()
    (datasets / "root.yaml").write_text(f"{text}    - kind: SetInfo\n      description: {said}\n")
    tiny.derive("other", "SELECT event_time, '\n::add-mask::z' AS value, `##[x]` FROM source")
    return tiny


@pytest.mark.parametrize(
    "verb",
    ["plan", "plan --md", "validate", "lint", "fmt --diff", "fmt --check", "render root", "status",
     "ls", "graph", "git check", "plan --json", "lint --json", "::nothing", "plan -s ##[x]"],
)  # fmt: skip
def test_no_verb_prints_a_command_that_is_not_its_own(
    forged: Tiny, odfbuild: Program, verb: str
) -> None:
    for broken in (True, False):
        said = odfbuild(*verb.split())
        assert commands(said.out) == []
        assert [line for line in commands(said.err) if not OWN.match(line)] == []
        if broken:
            for name in ("x.yaml", "n\n::error::y.yaml"):
                (forged.root / "datasets" / name).unlink()


def test_annotations_are_commands_and_files_stay_as_they_are(forged: Tiny) -> None:
    env = {**ENVIRONMENT, "GITHUB_ACTIONS": "true"}
    command = [str(BINARY), "-C", str(forged.root), "validate"]
    piped = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert [line for line in piped.stdout.splitlines() if line.startswith("::error ")]
    file = forged.root / "said"
    with file.open("w") as stream:
        subprocess.run(command, env=env, stdout=stream, stderr=stream, check=False)
    assert "##[add-mask]" in file.read_text()
    assert [line for line in commands(piped.stdout) if not OWN.match(line)] == []
