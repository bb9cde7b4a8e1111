"""Executes plans: the only room that appends to chains."""
