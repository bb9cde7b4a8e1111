"""The catalogue in a real browser."""
