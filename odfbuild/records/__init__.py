"""Records of committed datasets, read without Spark.

A dataset is a list of Parquet files and a rule: which of their records count. Everything that shows
records outside of a build reads them here, so that they are the same everywhere.
"""
