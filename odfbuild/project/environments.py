"""Environments of a project and the folders of their chains.

Chains of two environments may share a folder, but none may lie within that of another: there they
would look like orphaned chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from odfbuild.errors import ProjectError
from odfbuild.project.settings.content import Content, Environment
from odfbuild.project.variables import FOLDER
from odfbuild.project.yaml.source import locate
from odfbuild.wording import did_you_mean


def environments(root: Path, declared: Mapping[str, Any]) -> set[str]:
    """Environments that odfbuild.yaml declares or that have a file of variables."""
    return {*declared, *(path.stem for path in (root / FOLDER).glob("*.yaml"))}


def check_environment(root: Path, declared: Mapping[str, Any], env: str) -> None:
    """Raise `ProjectError` E0115 unless the project knows the environment."""
    known = environments(root, declared)
    if env in known:
        return
    raise ProjectError(
        f"this project has no environment '{env}'",
        code="E0115",
        notes=(f"there are: {', '.join(sorted(known)) or 'none'}",),
        help=did_you_mean(
            env,
            known,
            f"write {FOLDER}/{env}.yaml, or add '{env}' to `environments` in odfbuild.yaml",
        ),
    )


def state_of(content: Content, env: str | None) -> str:
    """The folder of the chains; `None`: no environment."""
    if env is None:
        return content.state_folder
    # Never the chains of another environment: a plan compares with its own only.
    own = content.environments.get(env, Environment()).state
    return f"{content.state_folder}-{env}" if own is None else own


def nested_states(content: Content, text: str, file: str) -> Iterator[ProjectError]:
    """`ProjectError` E0380 for each folder of chains that lies within another one.

    `text` is that of odfbuild.yaml.
    """
    folders = {env: PurePath(state_of(content, env)) for env in (None, *content.environments)}
    for env, folder in folders.items():
        for other, outer in folders.items():
            if outer not in folder.parents:
                continue
            path = ("state",) if env is None else ("environments", env, "state")
            apart = outer / (other or "default")
            yield ProjectError(
                f"the chains of {_named(env)} would be inside those of {_named(other)}: "
                f"{folder} is in {outer}",
                code="E0380",
                location=locate(text, file, 0, ("content", *path)),
                help=f"give each a folder of its own, such as `state: {apart}` for "
                f"{_named(other)}; move existing chains there",
            )


def _named(env: str | None) -> str:
    return "the project" if env is None else f"environment '{env}'"
