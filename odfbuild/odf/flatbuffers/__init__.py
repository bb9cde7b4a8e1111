"""The binary form of blocks and manifests, byte for byte that of the reference."""
