"""Tables and queries of databases as sources; a module for each kind of database."""
