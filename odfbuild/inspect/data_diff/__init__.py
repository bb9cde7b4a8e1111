"""What a change does to records: two states of a dataset compared by key and by column.

The states are two moments of a chain, a branch and the head, or the records of a chain and those
that a changed query gives. Commits nothing.
"""
