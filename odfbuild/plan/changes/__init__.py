"""What definitions and chains say differently, and which kind of change that is. Pure."""
