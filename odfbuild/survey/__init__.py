"""All that a plan is made from: definitions, chains, sources, selections, what is remembered."""
