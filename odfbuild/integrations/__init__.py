"""Schedulers: datasets as assets of Dagster and as tasks of Airflow.

They run `odfbuild apply --json-lines` as a program, so that a scheduler needs no Spark.
"""
