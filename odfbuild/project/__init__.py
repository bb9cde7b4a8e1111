"""Files to definitions: configuration, templates, YAML with positions, validation."""
