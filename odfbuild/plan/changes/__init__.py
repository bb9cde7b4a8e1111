"""Differences between definitions and chains, and their kinds. Pure."""
