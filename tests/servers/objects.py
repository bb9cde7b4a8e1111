"""Endpoints of stores of objects: moto for S3, emulators for Google's and Azure's."""

import contextlib
import logging
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.servers.programs import free_port, running

BUCKET = "lake"
Put = Callable[[str, bytes], None]
"""Stores an object under a key."""


@dataclass(frozen=True)
class Objects:
    endpoint: str
    client: Any

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)


@contextlib.contextmanager
def s3_endpoint() -> Iterator[Objects]:
    """An endpoint with an empty bucket, and the environment that leads there."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with _leading_to(f"http://{host}:{port}") as objects:
            yield objects
    finally:
        server.stop()


@contextlib.contextmanager
def s3_program(folder: Path) -> Iterator[Objects]:
    """The same as a program of its own, for clients that let no thread run while they wait."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, folder / "log"), _leading_to(f"http://127.0.0.1:{port}") as objects:
        yield objects


@contextlib.contextmanager
def _leading_to(endpoint: str) -> Iterator[Objects]:
    import boto3

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        # A client that libraries keep knows the endpoint of an earlier test.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        client = boto3.client("s3", endpoint_url=endpoint)
        client.create_bucket(Bucket=BUCKET)
        yield Objects(endpoint, client)


@contextlib.contextmanager
def gs_endpoint() -> Iterator[Put]:
    """An endpoint of Google's kind with an empty bucket, and the environment that leads there."""
    from gcp_storage_emulator.server import create_server

    port = free_port()
    for name in ("gcsfs", "gcp_storage_emulator"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        try:
            yield _put_through("gs")
        finally:
            server.stop()


@contextlib.contextmanager
def gs_conditions() -> Iterator[None]:
    """Let the endpoint of Google's kind honour generations, as the real one does."""
    from gcp_storage_emulator.exceptions import NotFound
    from gcp_storage_emulator.handlers import objects

    upload, mutex = objects._media_upload, threading.Lock()

    def conditional(request: Any, response: Any, storage: Any) -> None:
        wanted = request.query.get("ifGenerationMatch", [None])[0]
        with mutex:
            try:
                key = (request.params["bucket_name"], request.query["name"][0])
                found = storage.get_file_obj(*key)["generation"]
            except NotFound:
                found = "0"
            if wanted not in (None, found):
                response.status = HTTPStatus.PRECONDITION_FAILED
                return
            upload(request, response, storage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "_media_upload", conditional)
        yield


@contextlib.contextmanager
def az_endpoint(folder: Path) -> Iterator[Put]:
    """An endpoint of Azure's kind with an empty container, and the environment that leads there."""
    folder_of_make = Path(sys.prefix) / "azurite" / "node_modules" / ".bin"
    executable = shutil.which("azurite-blob", path=folder_of_make)
    if executable is None:
        pytest.skip("Azurite is not installed; `make test` does that where npm is on the path")
    port = free_port()
    command = [executable, "--inMemoryPersistence", "--silent"]
    command += ["--skipApiVersionCheck", "--blobPort", str(port)]
    folder.mkdir(exist_ok=True)
    where = f"http://127.0.0.1:{port}/devstoreaccount1"
    # The account that every Azurite has; its key is part of the documentation.
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    account = f"AccountName=devstoreaccount1;AccountKey={key};BlobEndpoint={where};"
    with running(command, port, folder / "log"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"DefaultEndpointsProtocol=http;{account}")
        put = _put_through("az")
        fsspec.filesystem("az", skip_instance_cache=True).mkdir(BUCKET)
        yield put


def _put_through(scheme: str) -> Put:
    def put(key: str, body: bytes) -> None:
        store = fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False)
        store.pipe(f"{BUCKET}/{key}", body)

    return put
