"""Published tables in the format kartothek; what reads it, too, is in the room `kartothek/`."""
