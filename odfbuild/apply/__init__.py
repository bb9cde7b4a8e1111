"""Carries a plan out: the only room that makes things happen."""
