"""The protocol, pure: events and their YAML and binary forms, hashes, identity, schema, chain rules.

Knows nothing of Spark, Git, files or networks.
"""
