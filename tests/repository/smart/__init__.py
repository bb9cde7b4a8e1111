"""The Smart Transfer Protocol."""
