"""The text of queries, read without an engine."""
