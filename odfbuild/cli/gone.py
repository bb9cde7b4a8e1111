"""Say of datasets that are read what is no longer there, as their owners' statements have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.cli.console import Console
    from odfbuild.store.workspace import Workspace


def tell_gone(console: Console, workspace: Workspace, names: Iterable[str]) -> None:
    """A note for each statement beside the chains of these datasets."""
    said = {name: found for name in names if (found := workspace.dataset(name).statements())}
    if said:
        from odfbuild.report.erasure import statement_lines

        for name, statements in said.items():
            for line in statement_lines(name, statements):
                console.note(line)
