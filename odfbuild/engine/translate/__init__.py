"""Queries of other engines as Spark SQL.

Definitions of public collections name `flink`, `datafusion` or `risingwave`. Their queries are
parsed in the dialect of their engine, held against a list of what means the same in Spark, and
written anew. What is not on the list is refused, with its place: a query that runs and gives other
records would be worse. Sources: documentation of Apache Flink ("Queries"), Apache DataFusion and
RisingWave ("SQL reference"); Open Data Fabric, `Transform.engine`.
"""
