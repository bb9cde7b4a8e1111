"""Open a table by the module of its format, which is imported only then."""

from __future__ import annotations

from importlib import import_module

from odfbuild.errors import missing_extra
from odfbuild.exchange.tables.contract import TableFormat, TableSpec
from odfbuild.project.settings.tables import FORMATS


def open_table(spec: TableSpec) -> TableFormat:
    """The table in its format: what `open_table` of the format's module makes of it.

    E0903 where the format's libraries are not installed.
    """
    name = spec.table.format
    try:
        opened: TableFormat = import_module(f"{__package__}.{name}").open_table(spec)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("odfbuild"):
            raise
        raise missing_extra(FORMATS[name].extra, f"tables of the format {name}") from None
    return opened
