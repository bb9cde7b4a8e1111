"""Give each dataset of a project the chain that apply would begin with, without running Spark.

python benchmarks/commit.py FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from odfbuild.apply.definitions import resolve_changes
from odfbuild.engine.release import engine_version
from odfbuild.odf.timestamp import Timestamp
from odfbuild.survey.survey import survey


def main(project: Path) -> None:
    """Commit all definitions."""
    os.fsync = lambda _: None  # these chains need not outlive a power cut
    found, version = survey(project), engine_version()
    for dataset in found.plan.datasets:
        events = resolve_changes(dataset, found.workspace, version)
        found.workspace.create(dataset.name, dataset.kind, events, Timestamp.now())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
