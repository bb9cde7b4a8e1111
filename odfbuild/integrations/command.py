"""Run `odfbuild apply --json-lines` and give its events while it goes on. Knows no scheduler."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from odfbuild.errors import EnvironmentProblem
from odfbuild.values import Value

Event = dict[str, Any]
"""A line of `apply --json-lines`; `schemas/run-event.schema.json` describes it."""

PROGRAM = (sys.executable, "-m", "odfbuild")
_PATIENCE_SECONDS = 30.0
"""How long the program may take to end once it is told to."""


class ApplyCommand(Value, kw_only=True):
    """What to apply: the project's folder, environment and branch; by default all datasets.

    `program` is how odfbuild is called, which may be that of another environment; `arguments` are
    further options of `apply`.
    """

    project: str
    env: str | None = None
    branch: str | None = None
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    program: tuple[str, ...] = PROGRAM
    arguments: tuple[str, ...] = ()

    @property
    def _begin(self) -> list[str]:
        return [
            *self.program,
            *("-C", self.project),
            *(("--env", self.env) if self.env else ()),
            *(("--branch", self.branch) if self.branch else ()),
        ]

    @property
    def words(self) -> list[str]:
        """The command line."""
        return [
            *self._begin,
            *("apply", "--auto-approve", "--json-lines"),
            *(word for each in self.select for word in ("--select", each)),
            *(word for each in self.exclude for word in ("--exclude", each)),
            *self.arguments,
        ]

    def start(self) -> Run:
        """Start the program; `EnvironmentProblem` E0913 where that does not work."""
        try:
            process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise _not_run(self, error.strerror or str(error)) from None
        return Run(self, process)

    def violations(self) -> dict[str, list[Event]]:
        """What all committed records of the selected datasets violate, by dataset.

        `EnvironmentProblem` E0913 where `odfbuild test` does not tell.
        """
        words = [*self._begin, "test", "--json", *self.select]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False
            )
            told = json.loads(done.stdout)
        except (OSError, ValueError) as error:
            raise _not_run(self, str(error), words) from None
        if "datasets" not in told:
            raise _not_run(self, "; ".join(reasons(told)), words)
        return {each["name"]: each["violations"] for each in told["datasets"]}


class Run:
    """A program that runs; its messages for people go where ours go on standard error."""

    def __init__(self, command: ApplyCommand, process: subprocess.Popen[str]) -> None:
        self._command = command
        self._process = process

    def events(self) -> Iterator[Event]:
        """Its events as they come; the last one is `run.end`.

        The program ends if the caller stops to read. Raises `EnvironmentProblem` E0913 where it
        ends without that event: it was killed, or it is not this program.
        """
        stdout, ended = self._process.stdout, False
        if stdout is None:
            raise AssertionError("the program was started with a pipe")
        try:
            for line in stdout:
                event = self._read(line)
                ended = event["event"] == "run.end"
                yield event
            code = self._process.wait()
        finally:
            self.stop()
            stdout.close()
        if not ended:
            raise _not_run(self._command, f"it ended with {code} and did not say how")

    def stop(self) -> None:
        """End the program; what it committed stays, and the next run continues there."""
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE_SECONDS)
            self._process.kill()
            self._process.wait()

    def _read(self, line: str) -> Event:
        try:
            event = json.loads(line)
            if isinstance(event["event"], str):
                return dict(event)
        except (ValueError, KeyError, TypeError):
            pass
        raise _not_run(self._command, f"this is no event: {line[:200].rstrip()}")


def is_end_of_dataset(event: Event) -> bool:
    """Whether an event tells how a dataset ended; there is exactly one for each."""
    return "status" in event and event["event"] != "table"


def failure(event: Event) -> str | None:
    """Why a dataset failed, with the checks that its records violate; `None`: it did not."""
    if event["status"] not in ("failed", "lost"):
        return None
    broken = [
        f"{each['check']}: {each['found']}"
        for each in event.get("check_results", ())
        if each["status"] == "failed"
    ]
    more = f" ({'; '.join(broken)})" if broken else ""
    return f"{event['dataset']}: {event['msg']}{more}"


def reasons(event: Event) -> list[str]:
    """Why a `run.end` or a document is a failure that no dataset told; empty where they did."""
    errors = [f"{each['message']} ({each['code']})" for each in event.get("errors") or ()]
    pushed = [
        f"{each['name']} was not published: {each['error']['message']}"
        for each in event.get("published") or ()
        if each.get("error")
    ]
    return [*errors, *pushed]


def _not_run(
    command: ApplyCommand, why: str, words: Sequence[str] | None = None
) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"`{' '.join(command.program)}` did not run to its end: {why}",
        code="E0913",
        notes=(f"command: {' '.join(words or command.words)}",),
        help="run that command by hand; give the path of odfbuild as `program` if it is another",
    )
