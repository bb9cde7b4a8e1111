"""Datasets of other projects: repositories, transfer protocols, signed heads, serving."""
