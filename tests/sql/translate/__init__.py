"""Queries of other engines in the words of Spark."""
