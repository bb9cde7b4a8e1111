"""A file is cut so that each core reads as much as the others."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine.spark.reading.splits import SMALLEST, cut_evenly, even_part
from odfbuild.engine.spark.results.sorted_parts import MOST_RUNS

MIB = 1 << 20
SIZES = st.integers(SMALLEST, 64 << 30)
CORES = st.integers(1, 64)


@given(SIZES, CORES)
def test_each_core_reads_as_many_parts_as_long_as_parts_are_not_too_large(size, cores):
    part = even_part(size, cores)
    assert 0 < part <= 128 * MIB
    if part < 128 * MIB:
        rounds = math.ceil(size / cores / part)
        assert rounds * cores * part - size < cores * (rounds + 1)  # nothing but rounding is left


@given(SIZES, CORES)
def test_parts_are_merged_in_one_go_where_parts_of_128_mib_would_be(size, cores):
    if max(cores, math.ceil(size / (128 * MIB))) <= MOST_RUNS:
        assert math.ceil(size / even_part(size, cores)) <= MOST_RUNS


def test_five_parts_on_four_cores_become_twenty():
    assert math.ceil(600 * MIB / even_part(600 * MIB, 4)) == 20


@pytest.mark.spark
def test_sessions_cut_large_files_evenly_unless_they_are_told_how(spark_engine):
    setting = "spark.sql.files.maxPartitionBytes"
    with spark_engine.request("tests") as spark:
        before = spark.conf.get(setting)
        cut_evenly(spark, SMALLEST)
        assert spark.conf.get(setting) == before
        cut_evenly(spark, 600 * MIB)
        cores = spark.sparkContext.defaultParallelism
        even = f"{even_part(604 * MIB, cores)}b"
        assert spark.conf.get(setting) == even != before
        spark.conf.set(setting, "64m")
        cut_evenly(spark, 600 * MIB)
        assert spark.conf.get(setting) in ("64m", f"{64 * MIB}b")
    with spark_engine.request("tests") as spark:
        assert spark.conf.get(setting) == before  # each request has settings of its own
