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
    from odfbuild.odf.multihash import Multihash
    from odfbuild.project.decode import Decoded


class Output(StrEnum):
    """Form in which objects are printed."""

    yaml = "yaml"
    json = "json"


OutputOptions = Annotated[Output, form_options(Output, "json")]


def decode(
    state: Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|HASH|-",
            help="A file, also the head of a chain (refs/head), standard input (-), or an object "
            "of this project by its hash or the last digits of it.",
        ),
    ],
    *,
    events: Annotated[
        bool,
        typer.Option(
            "--events", help="Of a head: print the newest events of its chain, oldest first."
        ),
    ] = False,
    output: OutputOptions,
) -> int:
    """Print a block, manifest, event or schema as YAML or JSON."""
    from odfbuild.project.decode import LARGEST, decode_bytes, decode_file

    if events:
        found = _events(state, Path(what))
    elif what == "-":
        found = decode_bytes(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    elif (stored := _stored(state, what)) is not None:
        found = decode_bytes(*stored)
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
    hash = _hash_in(reference)
    return reference if hash is None else reference.parent.with_name("blocks") / str(hash)


def _hash_in(reference: Path) -> Multihash | None:
    from odfbuild.odf.multihash import Multihash

    try:
        return Multihash.parse(reference.read_text("ascii").strip())
    except (OSError, ValueError):
        return None


def _stored(state: Context, what: str) -> tuple[bytes, str] | None:
    """The bytes of a block in the storage, by its head or hash, and what to call it."""
    from odfbuild.errors import OdfbuildError
    from odfbuild.inspect.objects import find_stored_block

    path = Path(what)
    head = _hash_in(path) if path.parent.name == "refs" else None
    if head is None and (path.exists() or os.sep in what):
        return None
    try:
        workspace = state.workspace()
    except OdfbuildError:
        return None  # outside of a project, files can be decoded
    return find_stored_block(workspace, what if head is None else str(head))


def _events(state: Context, file: Path) -> tuple[Decoded, ...]:
    """The newest events that a head names; a line that says why where they cannot be had.

    `git diff` would show nothing at all if this failed.
    """
    from odfbuild.errors import OdfbuildError
    from odfbuild.inspect.objects import newest_blocks
    from odfbuild.project.decode import Decoded, decode_bytes

    head = _hash_in(file)
    if head is None:
        raise ProjectError(
            f"{file} is not the head of a chain",
            code="E0133",
            help="give a file such as chains/NAME/refs/head",
        )
    try:
        blocks = newest_blocks(state.workspace(), head)
    except OdfbuildError as error:
        said = f"its events cannot be shown: {error.message}"
        return (Decoded(data={"head": str(head)}, facts=(said,)),)
    return tuple(found for hash, data in blocks for found in decode_bytes(data, str(hash)))


def _yaml(found: tuple[Decoded, ...]) -> str:
    from odfbuild.odf.yaml_text import dump_yaml

    return "---\n".join(
        "".join(f"# {fact}\n" for fact in each.facts) + dump_yaml(each.data) for each in found
    )


def _json(decoded: Decoded) -> str:
    return json.dumps(decoded.data, indent=2, ensure_ascii=False)
