"""The rules of a chain, and its state at the head."""
