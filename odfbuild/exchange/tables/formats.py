"""Which module knows which format of tables; each is imported when a table of it is opened."""

from __future__ import annotations

from importlib import import_module

from odfbuild.errors import missing_extra
from odfbuild.exchange.tables.contract import TableFormat, TableSpec
from odfbuild.project.settings.tables import FormatName

_MODULES: dict[FormatName, str] = {
    "kartothek": "odfbuild.exchange.tables.kartothek.format",
    "delta": "odfbuild.exchange.tables.delta",
    "iceberg": "odfbuild.exchange.tables.iceberg",
    "parquet": "odfbuild.exchange.tables.parquet",
}
_EXTRAS: dict[FormatName, str] = {"delta": "delta", "iceberg": "iceberg"}


def open_table(spec: TableSpec) -> TableFormat:
    """The table in its format: what `open_table` of the format's module makes of it.

    E0903 where the format's libraries are not installed.
    """
    name = spec.table.format
    try:
        opened: TableFormat = import_module(_MODULES[name]).open_table(spec)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("odfbuild"):
            raise
        extra = _EXTRAS.get(name, "tables")
        raise missing_extra(extra, f"tables of the format {name}") from None
    return opened
