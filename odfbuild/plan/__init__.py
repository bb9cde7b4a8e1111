"""Decisions: what differs, what is stale, why. Pure: values in, values out."""
