"""Commands that bring data elsewhere, or prove it."""
