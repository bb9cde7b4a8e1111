"""Create, format and lint definitions."""
