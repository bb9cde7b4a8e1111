"""Changes of a table of MariaDB, read from its binary log."""
