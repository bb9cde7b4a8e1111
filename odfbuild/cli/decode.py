"""`odfbuild decode`."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import form_options
from odfbuild.errors import ProjectError

if TYPE_CHECKING:
    from odfbuild.project.decode import Decoded


class Output(StrEnum):
    """Form in which objects are printed."""

    yaml = "yaml"
    json = "json"


OutputOptions = Annotated[Output, form_options(Output, "json")]


def decode(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|HASH|-",
            help="A file, also the head of a chain (refs/head), standard input (-), or an object "
            "of this project by its hash or the last digits of it.",
        ),
    ],
    output: OutputOptions,
) -> int:
    """Print a block, manifest, event or schema as YAML or JSON."""
    from odfbuild.project.decode import LARGEST, decode_bytes, decode_file

    state: Context = context.obj
    if what == "-":
        found = decode_bytes(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    else:
        found = decode_file(_path(state, what))
    state.console.document("\n".join(map(_json, found)) if output is Output.json else _yaml(found))
    return 0


def _path(state: Context, what: str) -> Path:
    """The file that is meant: one of that name, or the object of the project with that hash."""
    path = Path(what)
    if path.exists() or os.sep in what:
        return _block_of(path) if path.parent.name == "refs" else path
    from odfbuild.inspect.objects import FEWEST_DIGITS, find_objects

    found = find_objects(state.workspace(), what)
    if len(found) == 1:
        return found[0]
    if found:
        raise ProjectError(
            f"several objects of this project have a hash that ends with {what}",
            code="E0133",
            notes=tuple(map(str, found)),
            help="give more digits",
        )
    raise ProjectError(
        f"there is no file '{what}', and no object with that hash in this project",
        code="E0133",
        help="give a path, a whole hash, or its last digits, at least "
        f"{FEWEST_DIGITS}; `odfbuild log DATASET` shows those of blocks",
    )


def _block_of(reference: Path) -> Path:
    """The block that a reference of a chain (`refs/head`) names; any other file as it is."""
    from odfbuild.odf.multihash import Multihash

    try:
        hash = Multihash.parse(reference.read_text("ascii").strip())
    except (OSError, ValueError):
        return reference
    return reference.parent.with_name("blocks") / str(hash)


def _yaml(found: tuple[Decoded, ...]) -> str:
    from odfbuild.odf.yaml_text import dump_yaml

    return "---\n".join(
        "".join(f"# {fact}\n" for fact in each.facts) + dump_yaml(each.data) for each in found
    )


def _json(decoded: Decoded) -> str:
    return json.dumps(decoded.data, indent=2, ensure_ascii=False)
