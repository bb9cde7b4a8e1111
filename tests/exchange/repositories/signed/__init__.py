"""Signed heads, and who believes them."""
