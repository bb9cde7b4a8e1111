"""The protocol, pure: events, their YAML and binary forms, hashes, identity, schema, chain rules.

Knows nothing of Spark, Git, files or networks.
"""
