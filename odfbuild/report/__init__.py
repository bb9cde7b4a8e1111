"""Reports: pure functions from values to text and JSON."""
