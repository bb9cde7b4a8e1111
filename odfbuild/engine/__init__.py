"""Engines: their interface (`contract`), and the Spark engine (`spark`)."""
