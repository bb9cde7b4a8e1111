"""Datasets as tasks of Airflow: one operator for `odfbuild apply`, one task for each dataset.

A task that was killed is run again as it was: what it committed stays, and the rest follows, with
the same result. Works with Airflow 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from odfbuild.errors import missing_extra
from odfbuild.integrations.command import (
    PROGRAM,
    ApplyCommand,
    Event,
    Run,
    failure,
    is_end_of_dataset,
    reasons,
)
from odfbuild.integrations.datasets import datasets_of

if find_spec("airflow") is None:
    raise missing_extra("airflow", "tasks of Airflow")

from airflow.sdk import BaseOperator, TaskGroup
from airflow.sdk.exceptions import AirflowException

_LEVELS = {"info": 20, "warning": 30, "error": 40}


class OdfbuildApplyOperator(BaseOperator):
    """Applies datasets of a project, by default all.

    The result of the task (XCom) is a mapping: `records` added, `committed` and `unchanged` names.
    It fails with the reasons of all datasets that failed. `program` is how odfbuild is called, by
    default the one of this Python; `arguments` are further options of `apply`.
    """

    template_fields: Sequence[str] = ("project", "env", "branch", "select", "exclude", "arguments")
    ui_color = "#e8f0fe"

    def __init__(
        self,
        *,
        project: str,
        env: str | None = None,
        branch: str | None = None,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        program: Sequence[str] = PROGRAM,
        arguments: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.project, self.env, self.branch = project, env, branch
        self.select, self.exclude = list(select), list(exclude)
        self.program, self.arguments = list(program), list(arguments)
        self._run: Run | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """See `BaseOperator`."""
        command = ApplyCommand(
            project=self.project,
            env=self.env,
            branch=self.branch,
            select=tuple(self.select),
            exclude=tuple(self.exclude),
            program=tuple(self.program),
            arguments=tuple(self.arguments),
        )
        self._run = command.start()
        ended: list[Event] = []
        for event in self._run.events():
            said = f"{event['dataset']}: {event['msg']}" if event["dataset"] else event["msg"]
            self.log.log(_LEVELS[event["level"]], "%s", said)
            ended += [event] if is_end_of_dataset(event) else []
        if event["exit_code"]:
            failed = filter(None, map(failure, ended))
            raise AirflowException("; ".join([*failed, *reasons(event)]) or event["msg"])
        return {
            "records": event.get("records", 0),
            "committed": [e["dataset"] for e in ended if e["status"] == "committed"],
            "unchanged": [e["dataset"] for e in ended if e["status"] == "noop"],
        }

    def on_kill(self) -> None:
        """See `BaseOperator`."""
        if self._run is not None:
            self._run.stop()


def odfbuild_task_group(
    project: str,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    env: str | None = None,
    group_id: str = "odfbuild",
    **kwargs: Any,
) -> TaskGroup:
    """A task for each dataset of a project, or for those selected, after those of its inputs.

    `kwargs` go to each `OdfbuildApplyOperator`. Raises `Errors` for wrong definitions.
    """
    facts = datasets_of(project, env, select, exclude)
    group = TaskGroup(group_id)
    tasks = {
        each.name: OdfbuildApplyOperator(
            task_id=each.name.replace("/", "__"),
            task_group=group,
            project=project,
            env=env,
            select=[each.name],
            doc_md=each.description,
            **kwargs,
        )
        for each in facts
    }
    for each in facts:
        for name in (*each.inputs, *each.checked_against):
            if name in tasks:
                tasks[name] >> tasks[each.name]
    return group
