"""What a dataset is and where it comes from, in the words of standards that others read."""
