"""Projects that strangers would send, and the commands that docs/ci.md calls safe on them."""
