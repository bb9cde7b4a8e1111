"""Commands that write definitions."""
