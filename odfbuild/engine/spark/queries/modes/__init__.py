"""The ways in which a transformation is kept up to date, one module for each, and the choice."""
