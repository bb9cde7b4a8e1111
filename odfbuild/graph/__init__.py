"""Definitions to a graph: who reads whom, in which order, and what is wrong with it."""
