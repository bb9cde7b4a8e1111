"""How records are ordered, numbered, looked up and written."""
