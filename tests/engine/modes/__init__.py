"""How results are updated."""
