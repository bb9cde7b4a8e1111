"""Merge strategies: what of a batch becomes history."""
