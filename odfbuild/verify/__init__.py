"""Checks that stored history is what was committed."""
