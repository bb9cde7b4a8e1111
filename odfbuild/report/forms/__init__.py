"""What all reports are made of: tables, rows, words, YAML-like text, pages. Pure."""
