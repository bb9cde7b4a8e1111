"""Start the shop: its servers, its project in FOLDER, and its first day.

    python examples/shop/start.py FOLDER

It starts PostgreSQL, the mock cluster of librdkafka (no other broker of Kafka), and
`odfbuild serve --ingest`, all on loopback. It stays until Ctrl-C; then it stops the servers and
deletes FOLDER.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from postgres_server import Postgres, programs

PROJECT = Path(__file__).parent / "project"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
NEEDS = ("adbc_driver_postgresql", "confluent_kafka", "openpyxl", "pyspark", "uvicorn")
"""What the extras bring: modules of which each is needed."""
ODFBUILD = str(Path(sys.executable).with_name("odfbuild"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def database(scratch: Path, password: str) -> Iterator[str]:
    """A server with a database `shop`, which the user of this name owns; its host and port."""
    found = programs()
    if found is None or not shutil.which("psql"):
        raise SystemExit("PostgreSQL is missing: sudo apt-get install postgresql")
    folder = scratch / "postgres"
    folder.mkdir()
    server = Postgres(folder, free_port(), found, ("wal_level=logical",))
    access = "host all postgres 127.0.0.1/32 trust\nhost all shop 127.0.0.1/32 scram-sha-256\n"
    server.create(access)
    server.start()
    try:
        admin = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        role = f"CREATE ROLE shop LOGIN REPLICATION PASSWORD '{password}'"
        for statement in (role, "CREATE DATABASE shop OWNER shop"):
            subprocess.run(["psql", "-q", admin, "-c", statement], check=True)
        yield f"127.0.0.1:{server.port}"
    finally:
        server.stop()


def brokers() -> tuple[object, str]:
    """A mock cluster, which lives as long as the first value, and its brokers."""
    from confluent_kafka import Producer

    cluster = Producer({"test.mock.num.brokers": 1, "log_level": 3})
    [broker] = cluster.list_topics("visits", timeout=60).brokers.values()
    return cluster, f"127.0.0.1:{broker.port}"


@contextlib.contextmanager
def webhooks(project: Path, scratch: Path, port: int) -> Iterator[None]:
    """`odfbuild serve --ingest`, once it takes requests."""
    log = scratch / "serve.log"
    with log.open("wb") as sink:
        command = [ODFBUILD, "serve", "--ingest", "--port", str(port)]
        server = subprocess.Popen(command, cwd=project, stdout=sink, stderr=sink)
    try:
        while "Serving" not in log.read_text():
            if server.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def run(project: Path, *command: str) -> None:
    """Show a command, and run it in the project."""
    print(f"\n+ {shlex.join(command)}", flush=True)
    program = {"odfbuild": ODFBUILD, "python": sys.executable}[command[0]]
    subprocess.run([program, *command[1:]], cwd=project, check=True)


@contextlib.contextmanager
def shop(project: Path) -> Iterator[None]:
    """The project and its servers; at the end nothing is left of them."""
    with contextlib.ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(prefix="odfbuild-shop-"))
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        scratch.chmod(0o711)  # PostgreSQL runs as another user if this one is root
        shutil.copytree(PROJECT, project)
        stack.callback(shutil.rmtree, project, ignore_errors=True)

        password = secrets.token_hex(12)
        server = stack.enter_context(database(scratch, password))
        cluster, broker = brokers()
        stack.callback(lambda: cluster)
        machine, port = scratch / "machine.yaml", free_port()
        machine.write_text(MACHINE)
        environment = {
            "SHOP_SERVER": server,
            "SHOP_PASSWORD": password,
            "SHOP_BROKERS": broker,
            "SHOP_WEBHOOK": f"http://127.0.0.1:{port}/webhooks/stripe",
            "SHOP_WEBHOOK_SECRET": secrets.token_hex(24),
            "ODFBUILD_CONFIG": str(machine),
            # Spark starts once for all commands and for the webhooks.
            "ODFBUILD_RESIDENT": "auto",
        }
        os.environ.update(environment)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
        (project / "env.sh").write_text("".join(lines))

        stack.callback(
            subprocess.run,
            [ODFBUILD, "-q", "engine", "stop"],
            cwd=project,
            stdout=subprocess.DEVNULL,
        )
        run(project, "python", "day.py", "0")
        for name in ("shop.customers", "shop.orders"):
            run(project, "odfbuild", "source", "create", name)
        run(project, "odfbuild", "apply", "-y")
        stack.enter_context(webhooks(project, scratch, port))
        run(project, "python", "day.py", "1")
        run(project, "odfbuild", "apply", "-y")
        yield


MACHINE = """\
kind: Machine
version: 1
content:
  serve:
    ingest:
      webhooks:
        - name: stripe
          dataset: shop.payments
          sender: stripe
          secret: ${{ env.SHOP_WEBHOOK_SECRET }}
"""


def end(_number: int, _frame: FrameType | None) -> None:
    """End once: another Ctrl-C does not leave servers behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the project will lie; must not exist")
    folder = parser.parse_args().folder
    if folder.exists():
        parser.error(f"{folder} exists")
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing or not Path(ODFBUILD).exists():
        raise SystemExit(
            f"this Python lacks {', '.join(missing) or 'the command odfbuild'}: "
            f"{sys.executable} -m pip install 'odfbuild[spark,jre,databases,kafka,office,serve]'"
        )
    for number in SIGNALS:
        signal.signal(number, end)
    try:
        with shop(folder.resolve()):
            print(f"\nThe shop is open: cd {folder} && . ./env.sh", flush=True)
            print("Ctrl-C stops its servers and deletes that folder.", flush=True)
            signal.pause()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"this command failed: {shlex.join(error.cmd)}") from None


if __name__ == "__main__":
    main()
