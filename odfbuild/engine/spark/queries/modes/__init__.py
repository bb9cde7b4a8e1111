"""The modes in which a transformation is updated, one module for each, and their choice."""
