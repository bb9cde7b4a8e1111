"""Commands that show what is committed."""
