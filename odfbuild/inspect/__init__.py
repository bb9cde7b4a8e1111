"""Queries of committed data: status, SQL, provenance, corrections, drift, proofs."""
