"""Questions about what is committed: status, answers, provenance, corrections, drift, proofs."""
