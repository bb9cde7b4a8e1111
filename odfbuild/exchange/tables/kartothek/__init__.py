"""Published tables in the format kartothek; what reads it, too, is in the room `kartothek/`."""

from odfbuild.exchange.tables.kartothek.format import open_table as open_table
