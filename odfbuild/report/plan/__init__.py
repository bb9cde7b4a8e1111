"""A plan in every form that is read: text, JSON, Markdown, HTML. Pure."""
