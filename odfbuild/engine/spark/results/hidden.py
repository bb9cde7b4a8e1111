"""Names of internal columns of the engine, which no source or result may contain."""

from __future__ import annotations

CORRUPT = "__odfbuild_corrupt"
"""Text of a row that has not the form of a record."""
MISFIT = "__odfbuild_misfit"
"""Column whose value does not fit, `SEPARATOR`, the value as text; null where all fit."""
ROW = "__odfbuild_row"
"""Grows in the order of the source."""
OP = "__odfbuild_op"
FILE = "__odf_file"
"""Number, from 1, of the file that a record comes from, where several are read together; no query
sees it (`hidden_columns.PREFIX`)."""
PAIR = "__odfbuild_pair"
"""Orders the operations of one key; both sides of a correction have the same."""

OF_READING = (CORRUPT, MISFIT, ROW)
SEPARATOR = "\x1f"
