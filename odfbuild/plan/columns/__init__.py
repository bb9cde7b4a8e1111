"""What a change does to columns: those of results, where they come from, who reads them. Pure."""
