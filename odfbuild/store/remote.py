"""Stores of objects that clients of fsspec reach: `s3:`, `gs:`, `az:`, `abfs:`.

Credentials, region and endpoint come from where the store's own tools take them: variables of the
environment, profiles. Each kind of store needs an extra.
"""

from __future__ import annotations

from typing import Any

from odfbuild.errors import missing_extra

EXTRAS = {"s3": "s3", "gs": "gcs", "az": "azure", "abfs": "azure"}
"""Schemes of addresses, and the extra that brings the library for each."""

CREDENTIALS = (
    "check the address, and the credentials and endpoint that the environment names, such as "
    "AWS_PROFILE or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
)
"""The way out when a store cannot be reached."""


def scheme_of(address: str) -> str | None:
    """The scheme of an address in a store of objects; `None` for any other address or path."""
    scheme, separator, _ = address.partition("://")
    return scheme if separator and scheme in EXTRAS else None


_LIBRARIES = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure", "adlfs")


def connect(
    scheme: str, *, connect_seconds: float = 10, idle_seconds: float = 60, attempts: int = 4
) -> Any:
    """A file system of fsspec whose paths are `bucket/key`; `EnvironmentProblem` without library.

    Neither a client nor a listing of an earlier call answers for the store.
    """
    options: dict[str, Any] = {}
    if scheme == "s3":
        options["config_kwargs"] = {
            "connect_timeout": connect_seconds,
            "read_timeout": idle_seconds,
            "retries": {"max_attempts": attempts - 1, "mode": "standard"},
        }
    try:
        import fsspec

        return fsspec.filesystem(
            scheme, skip_instance_cache=True, use_listings_cache=False, **options
        )
    except ImportError:
        raise missing_extra(EXTRAS[scheme], f"{scheme}: addresses") from None


def is_failure(error: Exception) -> bool:
    """Whether the store, or the way to it, is at fault: clients let some errors through as is."""
    return isinstance(error, OSError | EOFError) or type(error).__module__.startswith(_LIBRARIES)


def why(error: Exception) -> str:
    """What a client's error says, in one line."""
    if isinstance(error, FileNotFoundError):
        return "there is no such object"
    return str(error) or type(error).__name__
