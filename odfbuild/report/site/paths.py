"""Where pages are in the folder. Names have an account and a slash, or neither."""

from __future__ import annotations


def dataset_path(name: str) -> str:
    """The page of a dataset."""
    return f"datasets/{name.replace('/', '~')}.html"


def passport_path(name: str) -> str:
    """The passport of a dataset."""
    return f"datasets/{name.replace('/', '~')}.croissant.json"


def run_path(run: str) -> str:
    """The page of a run."""
    return f"runs/{run}.html"


def list_path(number: int) -> str:
    """A part of the list of datasets."""
    return f"lists/{number}.html"
