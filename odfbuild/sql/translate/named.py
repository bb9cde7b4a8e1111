"""`engines:` in `odfbuild.yaml` and `machine.yaml`: which program computes which queries.

An engine is the built-in Spark, or a program that speaks the protocol of Open Data Fabric: one that
runs already (`address`), one that is started (`command`), or an image. Each of them has an exact
version, which the chain records. Imports nothing heavy: plans ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.odf.model import TransformSql
from odfbuild.values import Value

_ADDRESS = r"^(unix:.+|[^:/\s]+:\d+)$"
_DIGEST = re.compile(r"^(?:(?P<name>[^@\s]+)@)?(?P<digest>sha256:[0-9a-f]{64})$")
_TAG = re.compile(r":[^:/]+$")
_SIZE = r"^\d+[kKmMgG]?$"


class RemoteEngine(Value, kw_only=True):
    """A program that speaks the engine protocol: exactly one of `address`, `command` and `image`.

    `version` tells which one it is, unless the digest of an image does.
    """

    address: (
        Annotated[str, Fits(pattern=_ADDRESS, examples=["unix:/run/engine.sock", "localhost:2884"])]
        | None
    ) = setting(None, "Where an engine listens that runs already")
    command: tuple[str, ...] = setting(
        (), "Program that listens on the unix socket that ODF_ENGINE_SOCKET names"
    )
    image: Annotated[str, Fits(minLength=1)] | None = setting(
        None, "Image with its digest, such as ghcr.io/acme/engine@sha256:…, run without network"
    )
    version: Annotated[str, Fits(minLength=1, pattern=r"^[^@\s]+$", examples=["1.2.3"])] | None = (
        setting(None, "Exact version of a program at an address or of a command")
    )
    memory: Annotated[str, Fits(pattern=_SIZE, examples=["4g"])] = setting(
        "4g", "Memory of a container"
    )
    cpus: Annotated[float, Fits(exclusiveMinimum=0)] | None = setting(
        None, "Processors of a container; default: all"
    )
    pids: Annotated[int, Fits(minimum=1)] = setting(1024, "Processes and threads of a container")
    timeout: Annotated[float, Fits(exclusiveMinimum=0)] | None = setting(
        None, "Seconds that one step of a dataset may take; default: no limit"
    )
    start_timeout: Annotated[float, Fits(exclusiveMinimum=0)] = setting(
        60, "Seconds within which an engine has to listen"
    )
    network: Literal["none", "published"] = setting(
        "none", "published: the container has the default network of its runtime"
    )
    writable: bool = setting(False, "Whether a container may write into its own image's folders")

    def release(self, engine: str) -> str:
        """What the chain records as `version` of the transformations of `engine` that it computes.

        An `@`, or a digest alone, tells it from versions of the built-in Spark.
        """
        if self.image is not None:
            return pinned_image(self.image)
        return f"{engine.lower()}@{self.version}"

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return self.image or self.address or " ".join(self.command)


Configured = RemoteEngine | Literal["spark", "builtin"]
"""A program that is an engine, or the built-in Spark, which translates some other dialects."""
Engines = Mapping[str, Configured]
"""What computes queries, by the engine that they are written for, in lower case."""
NO_ENGINES: Engines = MappingProxyType({})


def remote_of(transform: TransformSql, engines: Engines) -> RemoteEngine | None:
    """The program that computes a transformation; `None` where it is the built-in Spark."""
    found = engines.get(transform.engine.lower())
    return found if isinstance(found, RemoteEngine) else None


def is_remote_release(version: str | None) -> bool:
    """Whether a recorded `version` names an engine that is no built-in one."""
    return version is not None and ("@" in version or _DIGEST.match(version) is not None)


def image_of_release(version: str) -> str | None:
    """The image that a recorded version names; `None` where it names none."""
    return version if _DIGEST.match(version) else None


def pinned_image(image: str) -> str:
    """An image without its tag, which its digest makes superfluous."""
    found = _DIGEST.match(image)
    if found is None or not found["name"]:
        return image
    return f"{_TAG.sub('', found['name'])}@{found['digest']}"


def refused(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What data of `engines` must not say: where in it, why, and what to do instead."""
    for name, entry in data.items():
        if not isinstance(entry, dict):
            continue
        ways = [each for each in ("address", "command", "image") if entry.get(each)]
        if len(ways) != 1:
            said = " and ".join(ways) if ways else "none of address, command and image"
            why = f"engine '{name}' has {said}: there must be exactly one of them"
            yield (name,), why, "name the image, the address or the command, and no other of them"
        elif ways == ["image"]:
            yield from _refused_image(name, entry)
        else:
            yield from _refused_program(name, entry, ways[0])


def _refused_image(
    name: str, entry: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if not _DIGEST.match(entry["image"]):
        why = f"image '{entry['image']}' has no digest, so that nobody knows which one computes"
        tells = f"podman image inspect --format '{{{{.Digest}}}}' {entry['image']}"
        yield (name, "image"), why, f"write NAME@sha256:…; `{tells}` prints the digest"
    if "version" in entry:
        why = f"engine '{name}' has a version beside its image, whose digest is its version"
        yield (name, "version"), why, "remove it"


_OF_CONTAINERS = ("memory", "cpus", "pids", "network", "writable")


def _refused_program(
    name: str, entry: Mapping[str, Any], way: str
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    if "version" not in entry:
        why = f"engine '{name}' has no version, which the chain has to record"
        yield (name,), why, "add `version`, and change it whenever the program changes"
    for key in _OF_CONTAINERS:
        if key in entry:
            why = f"`{key}` limits a container, and engine '{name}' has {way}"
            yield (name, key), why, "remove it, or use an image"
