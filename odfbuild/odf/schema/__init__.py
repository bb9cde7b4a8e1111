"""Schemas: Arrow and DDL forms, comparison, evolution."""
