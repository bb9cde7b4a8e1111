"""The command line: one file per verb that parses, calls, prints and returns the exit code."""
