"""Commands in branches."""
