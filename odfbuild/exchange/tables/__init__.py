"""Published tables: the state of a dataset in a format that other tools read.

The chain stays the truth. A table names the block that it holds, and each publication is one atomic
commit of the partitions that changed since.
"""
