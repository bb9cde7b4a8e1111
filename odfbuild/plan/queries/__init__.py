"""Check queries by their text and the columns of their inputs."""
