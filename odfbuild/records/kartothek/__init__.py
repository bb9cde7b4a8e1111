"""The table format kartothek, specification version 4: reader, and planner of queries.

A dataset is one metadata file, which names data files, schemas and inverted indices. Whoever
replaces that file commits. `open_dataset` of `dataset.py` reads; `table/kartothek` publishes.
Everything here needs only a place (`store/place.py`) and PyArrow.
"""
