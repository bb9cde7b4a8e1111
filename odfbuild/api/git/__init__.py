"""Git: publishing chains, hooks, comments on pull requests."""
