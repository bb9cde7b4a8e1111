"""Where chains and objects live: layout, head by compare-and-swap, claims, cache."""
