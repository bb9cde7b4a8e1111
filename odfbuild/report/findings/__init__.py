"""What checks and comparisons found, as text and as plain values. Pure."""
