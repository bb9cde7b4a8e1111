"""Engines as programs of their own: the protocol of Open Data Fabric over gRPC, both sides."""
