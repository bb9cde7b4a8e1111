"""What this machine remembers of tables that it published or looked at, for plans without network.

A file for each table: commands that publish different tables at once take nothing from each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.tables.contract import TablePin
from odfbuild.project.tables import Table, declared_tables
from odfbuild.records.kartothek import names
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.remote import scheme_of

if TYPE_CHECKING:
    from odfbuild.exchange.tables.contract import TableState
    from odfbuild.odf.multihash import Multihash
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace

_STAMP = b"odfbuild table 1\n"


class Known(NamedTuple):
    """What is remembered of a table: what it holds, and how many partitions it has."""

    pin: TablePin
    partitions: int | None


def known_of(config: Config, table: Table) -> Known | None:
    """What is remembered of a table; `None`: nothing, or it was elsewhere."""
    found = read_disposable(_file(config, table), _STAMP)
    if found is None or found[0] != table.address:
        return None
    pin = TablePin.from_text(found[1])
    return None if pin is None else Known(pin, found[2])


def remember(config: Config, table: Table, state: TableState | None) -> None:
    """Remember the state of a table; nothing of one that is not there or not ours."""
    file = _file(config, table)
    if state is None or state.pin is None or state.changed_by is not None:
        with suppress(OSError):  # a read-only checkout: nothing is kept there
            file.unlink(missing_ok=True)
        return
    write_disposable(file, _STAMP, (table.address, state.pin.to_text(), state.partitions))


def is_gone(table: Table) -> bool:
    """Whether nothing is where the table would be; a store of objects is not asked."""
    if scheme_of(table.location) is not None:
        return False
    if table.format != "kartothek":
        return not Path(table.address).exists()
    folder, uuid = Path(table.location), Path(table.address).name
    return not any((folder / names.metadata_file(uuid, form)).exists() for form in names.FORMS)


class PublishedTable(NamedTuple):
    """A table, the block of its dataset that it holds, and when that was committed."""

    table: Table
    block: Multihash
    time: Timestamp


def published_tables(
    config: Config, workspace: Workspace, datasets: Iterable[str]
) -> Iterator[PublishedTable]:
    """The tables of these datasets that were published, as far as this machine knows."""
    for table in declared_tables(config, datasets):
        known = known_of(config, table)
        if known is None:
            continue
        with suppress(OdfbuildError):  # the history was rewritten since
            block = workspace.dataset(table.dataset).read_block(known.pin.block)
            yield PublishedTable(table, known.pin.block, block.system_time)


def _file(config: Config, table: Table) -> Path:
    name = hashlib.sha256(table.name.encode()).hexdigest()[:32]
    return config.cache / "tables" / f"{name}.bin"
