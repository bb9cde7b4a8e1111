"""Chains in Git, and jobs of continuous integration."""
