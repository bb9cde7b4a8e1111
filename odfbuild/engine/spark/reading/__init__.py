"""Read steps: convert source files to frames, and locate bad records."""
