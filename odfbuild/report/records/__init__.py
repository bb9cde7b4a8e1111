"""Records of datasets, what became of them and what they were made from, as text and data."""
