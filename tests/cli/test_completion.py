"""Completion in real shells: what stands on the line after a press of the tabulator."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odfbuild.cli.complete import joined_words
from tests.apply.tiny import QUERY, Tiny

_BIN = Path(sys.executable).parent
_MARK = "the line is: "


def needs(shell: str) -> pytest.MarkDecorator:
    """Skip a test where the shell is not installed."""
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an environment and a selector; its folder is the home of the user, too."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("home") / "p")
    tiny.derive("further", QUERY, source="derived")
    (tiny.root / "vars").mkdir()
    (tiny.root / "vars" / "prod.yaml").write_text("{}\n")
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  selectors:\n    mornings: derived+\n")
    return tiny.root


class Shell:
    """An interactive shell in a terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._seen = ""
        self._decode = getincrementaldecoder("utf-8")().decode

    def wait_for(self, text: str, seconds: float = 120) -> str:
        """Everything printed up to and with `text`."""
        end = time.monotonic() + seconds
        while text not in self._seen:
            assert time.monotonic() < end, f"no {text!r} in {self._seen!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                self._seen += self._decode(os.read(self._terminal, 4096))
        before, _, self._seen = self._seen.partition(text)
        return before

    def run(self, command: str) -> None:
        """Run a command to its end."""
        os.write(self._terminal, f"{command}; echo do''ne\n".encode())
        self.wait_for("done\r\n")

    def completed(self, line: str) -> str:
        """The line after a press of the tabulator behind it."""
        # The line comes out by an `echo` in front of it.
        os.write(self._terminal, f"{line}\t".encode())
        os.write(self._terminal, f"\x01echo '{_MARK}' \x05 'e''nd'\n".encode())
        self.wait_for(_MARK + " ")
        printed = self.wait_for("end\r\n")
        while _MARK in printed:
            printed = printed.partition(_MARK + " ")[2]
        return re.sub(r"\x1b[^a-zA-Z]*[a-zA-Z]", "", printed).strip()


@contextmanager
def shell(project: Path, *command: str) -> Iterator[Shell]:
    """An interactive shell in the project."""
    environment = {
        "HOME": str(project.parent),
        "PATH": f"{_BIN}:/usr/bin:/bin",
        "TERM": "dumb",
        "PS1": "> ",
        "LANG": "C.UTF-8",
        "COLUMNS": "400",
    }
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=project,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Shell(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


LINES = {
    "odfbuild fresh": "odfbuild freshness",
    "odfbuild log furt": "odfbuild log further",
    "odfbuild plan -s +furt": "odfbuild plan -s +further",
    "odfbuild plan -s kind:ro": "odfbuild plan -s kind:root",
    "odfbuild ls selector:m": "odfbuild ls selector:mornings",
    "odfbuild plan --select=root,kind:der": "odfbuild plan --select=root,kind:derivative",
    "odfbuild ls @der": "odfbuild ls @derived",
    "odfbuild new mat": "odfbuild new matrix",
    "odfbuild new derivative x furt": "odfbuild new derivative x further",
    "odfbuild new files x datasets/furt": "odfbuild new files x datasets/further.yaml",
    "odfbuild -e pr": "odfbuild -e prod",
    "odfbuild plan --format js": "odfbuild plan --format json",
    "odfbuild plan --detai": "odfbuild plan --detailed-exitcode",
    "odfbuild apply --allow corr": "odfbuild apply --allow correct:",
    "odfbuild apply --allow rebuild:furt": "odfbuild apply --allow rebuild:further",
    "odfbuild promote pr --allow reb": "odfbuild promote pr --allow rebuild:",
    "odfbuild pull --allow unsigned:ro": "odfbuild pull --allow unsigned:root",
    "odfbuild watermark sh": "odfbuild watermark show",
    "odfbuild schema DatasetSn": "odfbuild schema DatasetSnapshot",
}


@needs("bash")
def test_bash_completes_once_completion_is_installed(project: Path) -> None:
    with shell(project, "bash", "--norc", "-i") as bash:
        bash.run("odfbuild --install-completion")
    assert "odfbuild" in (project.parent / ".bashrc").read_text()
    with shell(project, "bash", "-i") as bash:
        assert {line: bash.completed(line) for line in LINES} == LINES


@needs("zsh")
def test_zsh_completes(project: Path) -> None:
    with shell(project, "zsh", "-f", "-i") as zsh:
        zsh.run("autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste prompt_sp")
        zsh.run('eval "$(odfbuild --show-completion zsh)"')
        lines = {line: whole for line, whole in LINES.items() if "--select=" not in line}
        assert {line: zsh.completed(line) for line in lines} == lines


@needs("fish")
def test_fish_completes(project: Path) -> None:
    unlike = ("files", "--select=")
    lines = {a: b for a, b in LINES.items() if not any(each in a for each in unlike)}
    script = "odfbuild --show-completion fish | source\n" + "".join(
        f"echo '{line}' = (complete -C '{line}')\n" for line in lines
    )
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=project,
        env={**os.environ, "HOME": str(project.parent), "PATH": f"{_BIN}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    said = dict(line.split(" = ", 1) for line in done.stdout.splitlines())
    # Fish proposes words, with what they mean behind a tabulator.
    whole = {
        line: f"{line.rpartition(' ')[0]} {text.partition(chr(9))[0]}"
        for line, text in said.items()
    }
    assert whole == lines


def test_completion_is_fast_and_imports_nothing_heavy(project: Path) -> None:
    environment = {
        **os.environ,
        "_ODFBUILD_COMPLETE": "complete_bash",
        "COMP_WORDS": "odfbuild\nlog\nf",
        "COMP_CWORD": "2",
    }
    heavy = ("numpy", "pyarrow", "pyspark", "networkx", "jinja2", "rich", "sqlglot", "jsonschema")
    script = (
        "import sys\nfrom odfbuild.cli.main import run\nprint(run([]))\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n") == ["further", "0", "[]", ""]


def test_a_broken_project_proposes_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "odfbuild.yaml").write_text("a: [\n")
    for words in ("log\n", "-e\n", "plan\n-s\nselector\n:\nx"):
        done = subprocess.run(
            [_BIN / "odfbuild"],
            cwd=tmp_path,
            env={
                **os.environ,
                "_ODFBUILD_COMPLETE": "complete_bash",
                "COMP_WORDS": f"odfbuild\n{words}",
                "COMP_CWORD": str(words.count("\n") + 1),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["o", "plan", "-s", "kind", ":", "ro"], ["o", "plan", "-s", "kind:ro"]),
        (["o", "plan", "-s", "kind", ":"], ["o", "plan", "-s", "kind:"]),
        (["o", "plan", "--select", "=", "a", ":", "b"], ["o", "plan", "--select=a:b"]),
        (["o", "ls", "@", "x"], ["o", "ls", "@x"]),
        (["o", "ls", ""], ["o", "ls", ""]),
        (["o", "ls"], ["o", "ls"]),
    ],
)
def test_words_that_bash_takes_apart_are_one(words: list[str], joined: list[str]) -> None:
    assert joined_words(words, len(words) - 1) == (joined, len(joined) - 1)
