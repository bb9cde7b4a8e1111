"""Check that a cluster answers and works before it gets any work.

Spark itself tries an address that nobody answers for a minute, and waits for workers forever.
"""

from __future__ import annotations

import re
import socket
import time
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.status import executors, setting_seconds
from odfbuild.errors import EngineProblem

if TYPE_CHECKING:
    from pyspark import SparkContext

_CONNECT_SECONDS = 10.0
_CONNECT_PORT = 15002
_WORKER_SECONDS = 60.0
_WAITING = "spark.scheduler.maxRegisteredResourcesWaitingTime"
"""The setting by which Spark waits for executors, too, before it gives them work."""


def check_reachable(master: str) -> None:
    """Raise `EngineProblem` E0907 when no master of a standalone cluster answers.

    The same for a server of Spark Connect.
    """
    scheme, _, rest = master.partition("://")
    if scheme == "spark":
        what, where, addresses = "Spark master", master, rest.split(",")
    elif scheme == "sc":
        host = rest.split("/")[0]
        what, where = "Spark Connect server", f"sc://{host}"
        addresses = [host if re.search(r":\d+$", host) else f"{host}:{_CONNECT_PORT}"]
    else:
        return
    why = ""
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or re.fullmatch(r"\d+", port) is None:
            why = f"'{address}' is not of the form host:port"
            continue
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
            return
        except OSError as error:
            why = f"{address}: {error.strerror or error}"
    raise EngineProblem(
        f"no {what} answers at {where}",
        code="E0907",
        notes=(why,),
        help=f"start the {'cluster' if scheme == 'spark' else 'server'}, or correct "
        "ODFBUILD_SPARK_MASTER (or `engine.master` in machine.yaml)",
    )


def await_workers(context: SparkContext, master: str) -> None:
    """Wait for the first executor; `EngineProblem` E0908 when none comes in time."""
    seconds = setting_seconds(context, _WAITING, _WORKER_SECONDS)
    deadline = time.monotonic() + seconds
    while executors(context) < 2:  # the driver is one
        if time.monotonic() > deadline:
            raise EngineProblem(
                f"the workers of {master} take no work",
                code="E0908",
                notes=(f"none has started an executor in {seconds:.0f} seconds",),
                help="compare spark.executor.memory and spark.executor.cores in `engine.conf` with "
                "what the workers have free, and let them reach spark.driver.host; where they need "
                f"longer to start, set {_WAITING}",
            )
        time.sleep(0.1)
