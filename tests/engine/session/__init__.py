"""How Java and Spark start, are confined, fail and end."""
