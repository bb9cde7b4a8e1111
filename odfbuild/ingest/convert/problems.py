"""Errors in converting a file; who converts one in a definition says which file it is."""

from __future__ import annotations

from odfbuild.errors import IngestError


def wrong(what: str, help: str) -> IngestError:
    """The error for words that ask for nothing that can be done."""
    return IngestError(f"the conversion cannot be done: {what}", code="E0474", help=help)


def unreadable(what: str, help: str, *notes: str) -> IngestError:
    """The error for a file that is not what it should be."""
    return IngestError(what, code="E0475", notes=notes, help=help)


def no_table(what: str, help: str, *notes: str) -> IngestError:
    """The error for a file that does not hold what is asked for."""
    return IngestError(what, code="E0476", notes=notes, help=help)


def mixed(what: str, help: str, *notes: str) -> IngestError:
    """The error for a column with values of several kinds."""
    return IngestError(what, code="E0477", notes=notes, help=help)


def without_value(what: str, help: str, *notes: str) -> IngestError:
    """The error for cells that hold no value that could be kept."""
    return IngestError(what, code="E0478", notes=notes, help=help)


def too_large(what: str, help: str) -> IngestError:
    """The error for a file that takes more than it may."""
    return IngestError(what, code="E0479", help=help)
