"""What the real kartothek does with a dataset; runs in its own Python 3.8, told what by JSON.

Input: `{"root": folder, "steps": [{"do": name, ...}]}`. Output: a list with one answer per step.
"""

import datetime as dt
import json
import sys
import warnings
from functools import partial

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from kartothek.io.eager import (  # noqa: E402
    garbage_collect_dataset,
    read_table,
    update_dataset_from_dataframes,
)
from storefact import get_store_from_url  # noqa: E402


class Watched:
    """A store that notes which data files are opened."""

    def __init__(self, store, opened):
        self._store = store
        self._opened = opened

    def __getattr__(self, name):
        return getattr(self._store, name)

    def open(self, key):
        self._opened.append(key)
        return self._store.open(key)


def plain(value):
    """A value of pandas as JSON has it."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if value is None or value is pd.NaT or value is pd.NA or value != value:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (bool, int, float)) else str(value)


def given(value):
    """A value of a predicate."""
    if isinstance(value, list):
        return [given(each) for each in value]
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        if kind == "bytes":
            return bytes.fromhex(text)
        return dt.date.fromisoformat(text) if kind == "date" else pd.Timestamp(text)
    return value


def rows(frame):
    return [
        {column: plain(each[number]) for number, column in enumerate(frame.columns)}
        for each in frame.itertuples(index=False, name=None)
    ]


def read(store, uuid, table, predicates=None, columns=None):
    files = []
    frame = read_table(
        uuid,
        lambda: Watched(store(), files),
        table=table,
        columns=columns,
        predicates=predicates and [[tuple(given(each)) for each in part] for part in predicates],
        dates_as_object=True,
    )
    data = sorted({each for each in files if each.endswith(".parquet") and "/indices/" not in each})
    return {"rows": rows(frame), "opened": data}


def update(store, uuid, keys, scope, offsets, values):
    """Take rows of the dataset, change some columns, and write them in place of others."""
    frame = read_table(uuid, store, table="table", dates_as_object=True)
    frame = frame[frame["offset"].isin(offsets)].assign(**values)
    update_dataset_from_dataframes(
        [frame.reset_index(drop=True)],
        store=store,
        dataset_uuid=uuid,
        partition_on=keys,
        delete_scope=scope,
        metadata={"updated": "yes"},
    )
    garbage_collect_dataset(uuid, store)


def main():
    job = json.load(sys.stdin)
    store = partial(get_store_from_url, "hfs://" + job["root"])
    answers = []
    for step in job["steps"]:
        try:
            does = read if step.pop("do") == "read" else update
            answers.append(does(store, **step))
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(answers, sys.stdout)


main()
