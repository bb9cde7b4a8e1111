"""A Spark session: the Java that it runs in, its fences, its limits, its end."""
