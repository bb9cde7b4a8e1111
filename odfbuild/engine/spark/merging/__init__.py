"""Merge strategies: which records of a batch are appended."""
