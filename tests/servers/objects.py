"""An S3 endpoint: moto."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

BUCKET = "lake"


@dataclass(frozen=True)
class Objects:
    endpoint: str
    client: Any

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)


@contextlib.contextmanager
def s3_endpoint() -> Iterator[Objects]:
    """An endpoint with an empty bucket, and the environment that leads there."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client = boto3.client("s3", endpoint_url=endpoint)
        client.create_bucket(Bucket=BUCKET)
        try:
            yield Objects(endpoint, client)
        finally:
            server.stop()
