"""Projects of others, and folders that nobody may write to."""
