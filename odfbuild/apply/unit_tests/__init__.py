"""Unit tests of queries: given records, expected records, nothing committed."""
