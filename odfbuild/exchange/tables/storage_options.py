"""How `deltalake` and `pyiceberg` reach a store of objects: as our own clients do.

Credentials, region and endpoint come from where `store/remote.py` takes them. The library behind
`deltalake` reads fewer of these places, so it is given what they say; `pyiceberg` is told to use
the clients of fsspec, which are ours.
"""

from __future__ import annotations

import os

from odfbuild.store.remote import scheme_of


def for_delta(address: str) -> dict[str, str]:
    """The options with which `deltalake` reaches an address; none for a folder."""
    scheme = scheme_of(address)
    if scheme is None:
        return {}
    options = {"s3": _s3, "gs": _google, "az": _azure, "abfs": _azure}[scheme]()
    return {**options, "max_retries": "3"}


def for_iceberg(address: str) -> dict[str, str]:
    """The properties with which `pyiceberg` reaches an address; none for a folder."""
    if scheme_of(address) is None:
        return {}
    options = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
    if emulator := os.environ.get("STORAGE_EMULATOR_HOST"):
        options["gcs.service.host"] = emulator
    if connection := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        options["adls.connection-string"] = connection
    return options


def _s3() -> dict[str, str]:
    """What the tools of Amazon would use: variables, profiles, roles."""
    import botocore.session

    session = botocore.session.get_session()
    options = {"aws_region": session.get_config_variable("region") or "us-east-1"}
    credentials = session.get_credentials()
    if credentials is None:
        options["aws_skip_signature"] = "true"
    else:
        frozen = credentials.get_frozen_credentials()
        options["aws_access_key_id"] = frozen.access_key
        options["aws_secret_access_key"] = frozen.secret_key
        if frozen.token:
            options["aws_session_token"] = frozen.token
    endpoint = session.create_client("s3", region_name=options["aws_region"]).meta.endpoint_url
    if "amazonaws.com" not in endpoint:
        options["aws_endpoint"] = endpoint
        options["aws_allow_http"] = str(endpoint.startswith("http:")).lower()
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def _azure() -> dict[str, str]:
    """A connection string in its parts; the library reads the other variables itself."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(each.split("=", 1) for each in text.split(";") if "=" in each)
    names = {
        "AccountName": "azure_storage_account_name",
        "AccountKey": "azure_storage_account_key",
        "SharedAccessSignature": "azure_storage_sas_key",
        "BlobEndpoint": "azure_storage_endpoint",
    }
    options = {name: parts[key] for key, name in names.items() if key in parts}
    if options.get("azure_storage_endpoint", "").startswith("http:"):
        options["allow_http"] = "true"
    return options


def _google() -> dict[str, str]:
    """The endpoint of a store that is not Google's own, which asks for no credentials."""
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if not emulator:
        return {}
    return {"google_base_url": emulator, "google_skip_signature": "true", "allow_http": "true"}
