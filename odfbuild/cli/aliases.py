"""Verbs by names that other tools have for them."""

from __future__ import annotations

ALIASES = {
    "build": "apply",
    "list": "ls",
    "dag": "graph",
    "compile": "render",
    "why": "explain",
    "trace": "provenance",
}
"""What verbs are called elsewhere; not in the help."""
