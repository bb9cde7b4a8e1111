"""Queries: what is allowed, checked without data, and run over views of slices."""
