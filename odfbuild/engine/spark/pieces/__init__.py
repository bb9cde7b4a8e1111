"""Executors read slices from the storage of a project, and write slices there."""
