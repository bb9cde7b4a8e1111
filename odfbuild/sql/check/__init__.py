"""What is wrong with the text of a query, found without an engine."""
