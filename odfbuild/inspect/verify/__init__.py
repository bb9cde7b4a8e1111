"""Verify committed histories."""
