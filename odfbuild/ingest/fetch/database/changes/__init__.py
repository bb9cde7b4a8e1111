"""Changes of a table of PostgreSQL, by logical replication (change data capture)."""
