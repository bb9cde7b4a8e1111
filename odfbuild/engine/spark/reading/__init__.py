"""Read steps: source files become frames, and bad records get a place."""
