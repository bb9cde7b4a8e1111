"""Entries of odfbuild.yaml that do nothing, because no dataset has the name that they match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from odfbuild.errors import OdfbuildError, ProjectError
from odfbuild.project.model import Project
from odfbuild.wording import did_you_mean

_BY_NAME = ("checks", "policies", "freshness", "owners", "publish")
"""The lists whose entries are about the datasets that their `match` names."""


def idle_patterns(project: Project, datasets: Iterable[str]) -> Iterator[OdfbuildError]:
    """Patterns that match none of these datasets, and none whose definition is wrong."""
    if not any(getattr(project.config, key) for key in _BY_NAME):
        return
    if any(wrong.name is None for wrong in project.wrong):
        return  # nobody knows what that file defines
    names = {name.lower(): name for name in datasets}
    names |= {wrong.name.lower(): wrong.name for wrong in project.wrong if wrong.name}
    for key in _BY_NAME:
        for number, entry in enumerate(getattr(project.config, key)):
            for index, pattern in enumerate(entry.match):
                if not any(fnmatchcase(name, pattern) for name in names):
                    from odfbuild.project.config import place_in_config

                    path = ("content", key, number, "match", index)
                    yield ProjectError(
                        f"no dataset is called '{pattern}', so this entry of `{key}` does nothing",
                        code="E0151",
                        location=place_in_config(project.config.root, *path),
                        help=did_you_mean(
                            pattern, names.values(), "correct the pattern, or remove it"
                        ),
                    )
