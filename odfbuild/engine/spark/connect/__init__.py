"""A server of Spark Connect that computes what was checked here."""
