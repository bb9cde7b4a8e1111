"""The Spark engine: launcher, session, query checks, transformation, ingestion. Imports PySpark."""
