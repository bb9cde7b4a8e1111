"""YAML with positions: read strictly, and rewritten with its comments kept."""
