"""Decisions: what differs, what is stale, and why. Pure."""
