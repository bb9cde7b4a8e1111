"""Exit codes of commands that ran; errors have their own codes."""

EXIT_CHANGES = 2
"""There are changes or drift, where --detailed-exitcode asks for it."""

EXIT_MISMATCH = 3
"""Something is not as it should be: histories, checked records, ages."""

EXIT_USAGE = 64
"""The command line is wrong."""

EXIT_INTERRUPTED = 130
"""As shells have it for SIGINT."""
