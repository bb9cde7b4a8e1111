"""Values of persons: encrypted in slices, plain for queries, hidden from who may not see them."""
