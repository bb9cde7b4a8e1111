"""`odfbuild init`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions
from odfbuild.errors import ProjectError

_CONFIG = """\
kind: Project
version: 1
content:
  name: {name}
"""

_NO_PART_OF_A_NAME = re.compile("[^A-Za-z0-9._-]+")


def init(
    state: Context,
    *,
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of the project (default: the current folder).")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the project (default: name of the folder)."),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Start a project with an example dataset and its data."""
    from odfbuild.project.editor import GITIGNORE, provide_schemas, schema_comment
    from odfbuild.project.resources import template_text

    root = (folder or state.directory or Path.cwd()).resolve()
    if (root / "odfbuild.yaml").exists():
        raise ProjectError(
            f"there is already a project in {root}",
            code="E0110",
            help="edit its odfbuild.yaml, or choose another folder",
        )
    header = schema_comment(root, root / "datasets" / "temperatures.yaml")
    files = {
        "odfbuild.yaml": schema_comment(root, root / "odfbuild.yaml")
        + _CONFIG.format(name=_name(name, root)),
        "datasets/temperatures.yaml": header + template_text("init/temperatures.yaml"),
        "datasets/temperatures.warm.yaml": header + template_text("init/temperatures.warm.yaml"),
        "data/temperatures/2026-01.csv": template_text("init/2026-01.csv"),
        ".gitignore": GITIGNORE,
    }
    created = []
    for relative, text in files.items():
        path = root / relative
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        created.append(relative)
    provide_schemas(root)
    if as_json:
        state.console.data({"folder": str(root), "files": created})
        return 0
    state.console.result(
        "\n".join([f"Created in {root}:", *(f"  {path}" for path in created)])
        + "\nNext: odfbuild plan"
    )
    return 0


def _name(given: str | None, root: Path) -> str:
    """The name that is given, or that of the folder as far as it can be one."""
    if given is None:
        return _possible(root.name)
    from odfbuild.project.settings.content import PROJECT_NAME

    if re.search(PROJECT_NAME, given) is None:
        raise ProjectError(
            f"'{given}' cannot be the name of a project",
            code="E0105",
            notes=("names are letters, digits, `.`, `_` and `-`",),
            help=f"for example '{_possible(given)}'",
        )
    return given


def _possible(text: str) -> str:
    return _NO_PART_OF_A_NAME.sub("-", text).strip("._-")[:100] or "project"
