"""What Airflow does with a project; run in an environment that has Airflow, by its tests.

The environment has the folder of the project, and the program that builds it. Prints JSON on the
last line.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from airflow.sdk import DAG

from odfbuild.integrations.airflow import OdfbuildApplyOperator, odfbuild_task_group

FOLDER = os.environ["FOLDER_OF_PROJECT"]
PROGRAM = [os.environ["PROGRAM_OF_ODFBUILD"]]

results = {}


def keep_result(context, result):
    results["whole"] = result


with DAG("datasets", start_date=datetime(2026, 1, 1), schedule=None) as datasets:
    odfbuild_task_group(FOLDER, program=PROGRAM)
with DAG("whole", start_date=datetime(2026, 1, 1), schedule=None) as whole:
    OdfbuildApplyOperator(
        task_id="apply",
        project=FOLDER,
        program=PROGRAM,
        select=["{{ 'derived' }}+"],
        post_execute=keep_result,
    )

if __name__ == "__main__":
    found = {}
    for dag in (datasets, whole):
        run = dag.test()
        found[dag.dag_id] = {
            "state": str(run.state),
            "tasks": {each.task_id: str(each.state) for each in run.get_task_instances()},
            **({"result": results.get("whole")} if dag is whole else {}),
        }
    edges = {task.task_id: sorted(task.downstream_task_ids) for task in datasets.tasks}
    print(json.dumps({"edges": edges, "runs": found}))
