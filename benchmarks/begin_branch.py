"""Begin the branch pr-1 of a project: a dataset goes on there by one block.

python benchmarks/begin_branch.py FOLDER DATASET
"""

from __future__ import annotations

import sys
from pathlib import Path

from odfbuild.odf.model import SetInfo
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.config import load_config
from odfbuild.project.overrides import Overrides


def main(project: Path, dataset: str) -> None:
    """Append a description, in the branch."""
    space = load_config(project, Overrides(branch="pr-1")).workspace()
    store = space.dataset(dataset)
    store.append(store.head(), (SetInfo(description="changed"),), Timestamp.now())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
