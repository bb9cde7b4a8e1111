"""Data contracts in the form of the Open Data Contract Standard (ODCS)."""
