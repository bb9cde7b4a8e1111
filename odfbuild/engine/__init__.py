"""Engines: what any of them is asked (`contract`), and ours, Spark (`spark`)."""
