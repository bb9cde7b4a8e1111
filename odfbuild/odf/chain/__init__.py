"""The rules of a chain, and what it amounts to at its head."""
