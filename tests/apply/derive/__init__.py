"""Queries become records of derivatives."""
