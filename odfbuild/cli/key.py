"""`odfbuild key`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions, SelectionOptions

if TYPE_CHECKING:
    from odfbuild.cli.console import Console
    from odfbuild.plan.graph.selection import Selection

key = Group(help="List, export and import the private keys of datasets; rotate wrapping keys.")

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="File with the passphrase (default: ODFBUILD_KEYS_PASSPHRASE, or ask).",
    ),
]


@key.command("status")
def status(state: Context, selection: SelectionOptions, as_json: JsonOptions) -> int:
    """List datasets, their identities, and where their private keys are."""
    from odfbuild.inspect.keys import dataset_keys
    from odfbuild.report.keys import keys_to_data, render_keys

    found = dataset_keys(state.workspace(), _names(state, selection))
    state.console.show(as_json, lambda: keys_to_data(found), lambda: render_keys(found))
    return 0


@key.command("export")
def export(
    state: Context,
    selection: SelectionOptions,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File to write; must not exist.")
    ],
    passphrase_file: PassphraseFile = None,
    as_json: JsonOptions,
) -> int:
    """Write private keys to an encrypted file, for a backup, another machine or CI.

    Without a selection, writes all private keys that are here.
    """
    from odfbuild.inspect.keys import export_keys
    from odfbuild.wording import count

    written = export_keys(
        state.workspace(),
        _names(state, selection),
        out,
        lambda: _passphrase(state.console, passphrase_file, new=True),
    )
    if as_json:
        state.console.data({"file": str(out), "keys": written})
    else:
        state.console.result(f"Wrote {out}: {count(written, 'private key')}.")
    return 0


@key.command("import")
def import_(
    state: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that `key export` wrote.")],
    *,
    passphrase_file: PassphraseFile = None,
    as_json: JsonOptions,
) -> int:
    """Store the private keys of an exported file in this project.

    Checks that each key belongs to its dataset. Never replaces a key.
    """
    from odfbuild.inspect.keys import import_keys
    from odfbuild.report.keys import keys_to_data, render_imported
    from odfbuild.store.keys import read_bundle

    bundle = read_bundle(file)
    passphrase = _passphrase(state.console, passphrase_file, new=False)
    new, known = import_keys(state.workspace(), bundle, passphrase)
    if as_json:
        data = {"imported": keys_to_data(new), "already_here": keys_to_data(known)}
        state.console.data(data)
    else:
        state.console.result(render_imported(new, known))
    return 0


@key.command("rotate")
def rotate(
    state: Context,
    new: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="New wrapping key: a file, env:VARIABLE, or kms:KEY of an AWS KMS."
        ),
    ],
    *,
    as_json: JsonOptions,
) -> int:
    """Encrypt the keys of subjects by a new wrapping key; the old one opens them no more.

    Rewrites one small file, however many subjects there are. Afterwards, `personal.wrapping` of the
    machine's configuration has to name the new key.
    """
    from odfbuild.project.subject_keys import rotate_wrapping_key

    rotate_wrapping_key(state.config(), new)
    if as_json:
        state.console.data({"wrapping": new})
    else:
        from odfbuild.project.machine import machine_file

        state.console.result(f"Wrapped by {new}: set `personal.wrapping` in {machine_file()}.")
    return 0


def _names(state: Context, selection: Selection) -> list[str] | None:
    return state.committed(state.workspace(), selection) if selection else None


def _passphrase(console: Console, file: Path | None, *, new: bool) -> str:
    """From a file, the environment, or the terminal, where a `new` one is typed twice."""
    from odfbuild.store.keys import PASSPHRASE, passphrase_in

    if file is not None:
        try:
            given = file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(
                f"{file} cannot be read: {error}", param_hint="--passphrase-file"
            ) from None
        if not given:
            raise typer.BadParameter(f"{file} is empty", param_hint="--passphrase-file")
        return given
    if not os.environ.get(PASSPHRASE) and console.interactive:
        return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=new, err=True))
    return passphrase_in(os.environ)
