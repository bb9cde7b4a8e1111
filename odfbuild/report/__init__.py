"""What people and programs read: pure functions from values to text and JSON."""
