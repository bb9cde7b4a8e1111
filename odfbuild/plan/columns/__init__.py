"""Effects of a change on columns: results, lineage, downstream datasets. Pure."""
