"""The Spark session: Java, sandbox, limits, shutdown."""
