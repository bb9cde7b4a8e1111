"""Serve the datasets of a project over HTTP: Simple and Smart Transfer Protocol."""
