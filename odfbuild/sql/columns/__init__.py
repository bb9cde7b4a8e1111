"""Which columns a query gives, and from which columns of its inputs."""
