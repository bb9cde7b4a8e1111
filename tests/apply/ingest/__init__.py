"""Sources become records."""
