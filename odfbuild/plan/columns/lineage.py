"""What is known of the columns of inputs where lineage is told from text."""

from __future__ import annotations

from collections.abc import Mapping

Names = Mapping[str, tuple[str, ...] | None]
"""Names of the columns of each input by alias; `None` where they are not known."""
