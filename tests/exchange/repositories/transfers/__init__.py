"""Pulls and pushes, also those that are killed."""
