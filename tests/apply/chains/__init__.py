"""What is done to whole chains: promotion, reset, deletion, collection."""
