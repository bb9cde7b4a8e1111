"""What writes definitions: new ones, their format, and the findings of lint."""
