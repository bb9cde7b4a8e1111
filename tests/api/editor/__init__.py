"""The language server and what it answers."""
