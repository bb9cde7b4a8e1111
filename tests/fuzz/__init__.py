"""Made-up input, in any number: what is read from projects and chains."""
