"""Release objects of the JVM that Python no longer uses, many in one request.

py4j releases each object by a request of its own, which was a third of all requests.
"""

from __future__ import annotations

import contextlib
from typing import Any

_TOGETHER = 200


def release_together(gateway: Any) -> None:
    """Let py4j release `_TOGETHER` objects in one request."""
    client = gateway._gateway_client
    kept = gateway.java_gateway_server.getGateway().getBindings().keySet()
    names = gateway.jvm.org.apache.spark.util.Utils.stringToSeq
    as_java = gateway.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    pass_on = client.garbage_collect_object
    waiting: list[str] = []

    def release(name: str, enqueue: bool = True) -> None:
        if enqueue:  # from whatever thread let go of it, to the one that asks the JVM
            pass_on(name)
            return
        waiting.append(name)
        if len(waiting) >= _TOGETHER:
            ids, waiting[:] = ",".join(waiting), ()
            with contextlib.suppress(Exception):  # a JVM that ended holds nothing
                kept.removeAll(as_java(names(ids)))

    client.garbage_collect_object = release
