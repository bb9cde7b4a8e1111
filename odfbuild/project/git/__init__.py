"""The Git repository around a project: revisions, and notes about heads on commits."""
