"""What a change does to records, as text, JSON, Markdown and HTML."""
