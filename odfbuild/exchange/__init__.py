"""What others read and give: repositories of datasets, and published tables."""
