"""The quick tests do without gRPC and PySpark: only messages are tested there."""

from importlib.util import find_spec

if find_spec("grpc") is None or find_spec("pyspark") is None:
    collect_ignore_glob = ["test_[!w]*.py"]
