"""Begin the branch pr-1 of a project: a dataset goes on there by one block.

python benchmarks/begin_branch.py FOLDER DATASET
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.config import load_config
from odfbuild.project.overrides import Overrides


def main(project: Path, dataset: str) -> None:
    """Append its transformation again, in the branch."""
    space = load_config(project, Overrides(branch="pr-1")).workspace()
    store, state = space.dataset(dataset), space.projection(dataset)
    assert state is not None
    assert state.transform is not None
    queries = state.transform.transform
    changed = replace(state.transform, transform=replace(queries, query=f"{queries.query} "))
    store.append(store.head(), (changed,), Timestamp.now())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
