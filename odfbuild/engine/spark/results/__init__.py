"""Results: frames become ordered Parquet parts."""
