"""The graph of `generate.py` in plain PySpark: what somebody writes without a build tool.

python benchmarks/plain_spark.py SIZE FOLDER, where FOLDER is the project of odfbuild.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from generate import COLUMNS, Node, make_graph, query
from pyspark.sql import SparkSession

SCHEMA = ", ".join(f"{column} {kind}" for column, kind, _ in COLUMNS)


def main(size: int, folder: Path) -> None:
    """Write a folder of Parquet files for each dataset, layer by layer, with two threads."""
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()

    def make(node: Node) -> None:
        name = "_".join(node.words)
        if node.layer:
            frame = spark.sql(query(node, ["_".join(each.words) for each in node.inputs]))
        else:
            source = str(folder / "data" / "-".join(node.words) / "part-0.csv")
            frame = spark.read.csv(source, schema=SCHEMA, header=True)
        target = str(folder / "plain" / name)
        frame.write.parquet(target)
        spark.read.parquet(target).createOrReplaceTempView(name)

    with ThreadPoolExecutor(2) as pool:
        for _, layer in groupby(make_graph(size), lambda node: node.layer):
            list(pool.map(make, layer))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
