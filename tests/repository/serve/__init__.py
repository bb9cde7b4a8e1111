"""The server of datasets."""
