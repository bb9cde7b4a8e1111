"""Which files of roots are read, and which of them together."""
