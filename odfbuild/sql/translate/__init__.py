"""Queries of other engines as Spark SQL.

Definitions of public collections name `flink`, `datafusion` or `risingwave`. Their queries are
parsed in the dialect of their engine, checked against a list of known equivalents, and rewritten.
Everything else is refused, with its place, because a translated query must not give other records.
Sources: documentation of Apache Flink ("Queries"), Apache DataFusion and RisingWave ("SQL
reference"); Open Data Fabric, `Transform.engine`.
"""
