"""First pull of many datasets, beside plain copying of their files and beside `git clone`.

    python benchmarks/sharing.py --datasets 1000 --megabytes 10

writes a repository of datasets with ten blocks and eight objects each, serves it with nginx on
loopback, and prints seconds of wall time and of CPU, and the ratio to plain copying with the same
client library (httpx, as many requests at once). `pull` checks every hash and every rule of the
chains, and syncs files to disk; `--sync` does the latter for plain copying, too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeTimestamp,
    OffsetInterval,
    Seed,
    SetDataSchema,
    TimeUnit,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore

NOW = Timestamp.parse("2024-05-01T12:00:00Z")
TIME = DataTypeTimestamp(unit=TimeUnit.Millisecond, timezone="UTC")
SCHEMA = SetDataSchema(
    schema=DataSchema(
        fields=(
            DataField(name="offset", type=DataTypeInt64()),
            DataField(name="op", type=DataTypeInt32()),
            DataField(name="system_time", type=TIME),
            DataField(name="event_time", type=TIME),
        )
    )
)
SLICES = 8
"""With the seed and the schema, a dataset has ten blocks."""

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


def main() -> int:
    """Write the repository, copy it in each way, print a line for each."""
    options = parse()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-sharing-", dir=options.folder))
    try:
        names = [f"org.example.d{number:04}" for number in range(options.datasets)]
        size = int(options.megabytes * (1 << 20)) // SLICES
        for number, name in enumerate(names):
            write_dataset(work / "www" / name, number, size)
        files = [str(each.relative_to(work / "www")) for each in files_below(work / "www")]
        total = sum((work / "www" / each).stat().st_size for each in files)
        print(f"{len(names):,} datasets, {len(files):,} files, {total / 1e6:,.0f} MB")
        with nginx(work, options.port) as url:
            plain = measure(
                f"plain copying, httpx{', synced' if options.sync else ''}",
                lambda: copy(url, files, work / "plain", options.at_once, sync=options.sync),
            )
            pulled = measure("odfbuild pull", lambda: pull(url, names, work / "puller", options))
            news = measure("odfbuild pull, nothing new", lambda: again(work / "puller", options))
        git_files(work / "git", len(files))
        cloned = measure("git clone of as many small files", lambda: clone(work))
        check_same(work / "www", work / "puller" / "chains" / "acme")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"odfbuild pull / plain copying: {pulled / plain:.2f} (meant to be at most 1.5)")
    print(f"odfbuild pull / git clone:     {pulled / cloned:.2f}")
    print(f"nothing new, for each dataset: {1000 * news / len(names):.1f} ms")
    return 0


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", type=int, default=1_000)
    parser.add_argument("--megabytes", type=float, default=10, help="objects of each dataset")
    parser.add_argument("--at-once", type=int, default=8, help="requests of plain copying")
    parser.add_argument("--sync", action="store_true", help="sync what plain copying writes")
    parser.add_argument("--folder", help="where to work, on the disk that is to be measured")
    parser.add_argument("--port", type=int, default=18_573)
    parser.add_argument("--odfbuild", default=str(Path(sys.executable).with_name("odfbuild")))
    return parser.parse_args()


def write_dataset(folder: Path, number: int, size: int) -> None:
    """A dataset of ten blocks; its objects are random bytes, which `pull` does not look into."""
    store = DatasetStore(folder)
    for each in ("data", "refs"):
        (folder / each).mkdir(parents=True)
    slices = []
    for first in range(SLICES):
        data = os.urandom(size)
        hash = Multihash.sha3_256(data)
        (folder / "data" / str(hash)).write_bytes(data)
        offsets = OffsetInterval(start=first, end=first)
        new = DataSlice(logical_hash=hash, physical_hash=hash, offset_interval=offsets, size=size)
        slices.append(AddData(prev_offset=first - 1 if first else None, new_data=new))
    seed = Seed(dataset_id=DatasetId(number.to_bytes(32, "big")), dataset_kind=DatasetKind.Root)
    store.append(None, (seed, SCHEMA, *slices), NOW)


def files_below(folder: Path) -> list[Path]:
    """All files, sorted."""
    return sorted(each for each in folder.rglob("*") if each.is_file())


@contextlib.contextmanager
def nginx(work: Path, port: int) -> Iterator[str]:
    """A plain web server that shows `work/www`."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sys.exit("nginx is not installed")
    work.chmod(0o755)
    config = work / "nginx.conf"
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(NGINX.format(folder=work, port=port, user=user))
    server = subprocess.Popen([program, "-c", str(config), "-e", str(work / "error.log")])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            with (
                contextlib.suppress(OSError),
                urlopen(f"{url}/"),
            ):
                break
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait()


def measure(what: str, work: Callable[[], None]) -> float:
    """Seconds of wall time; prints them, and CPU of this process and its children."""
    cpu, begin = _cpu(), time.monotonic()
    work()
    taken, used = time.monotonic() - begin, _cpu() - cpu
    print(f"{what:<40} {taken:8.2f} s wall {used:8.2f} s CPU", flush=True)
    return taken


def _cpu() -> float:
    both = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def copy(url: str, files: list[str], target: Path, at_once: int, *, sync: bool) -> None:
    """Download every file whose name is known, and look at none."""
    import httpx

    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    with httpx.Client(limits=limits) as client:

        def one(name: str) -> None:
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with client.stream("GET", f"{url}/{name}") as answer, file.open("wb") as out:
                for piece in answer.iter_raw():
                    out.write(piece)
                if sync:
                    out.flush()
                    os.fsync(out.fileno())

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(one, files))


def pull(url: str, names: list[str], root: Path, options: argparse.Namespace) -> None:
    """Pull all datasets into a new project."""
    root.mkdir()
    settings = f"repositories:\n    acme: {{url: {url}}}"
    (root / "odfbuild.yaml").write_text(
        f"kind: Project\nversion: 1\ncontent:\n  name: bench\n  {settings}\n"
    )
    run([options.odfbuild, "pull", *(f"acme/{name}" for name in names)], root)


def again(root: Path, options: argparse.Namespace) -> None:
    """Pull all external datasets."""
    run([options.odfbuild, "pull"], root)


def git_files(folder: Path, number: int) -> None:
    """A repository with as many files of a kilobyte, in folders of a thousand."""
    for each in range(number):
        file = folder / f"{each // 1000}" / f"{each}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(1000))
    author = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "Add files"]):
        run(["git", *arguments], folder)


def clone(work: Path) -> None:
    """Clone without hard links, as from another machine."""
    run(["git", "clone", "-q", "--no-local", str(work / "git"), str(work / "clone")], work)


def run(command: list[str], folder: Path) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def check_same(one: Path, other: Path) -> None:
    """End if a chain or an object that was pulled differs from what was published."""
    for file in files_below(one):
        copied = other / file.relative_to(one)
        if not copied.is_file() or copied.stat().st_size != file.stat().st_size:
            sys.exit(f"{copied} is not {file}")


if __name__ == "__main__":
    sys.exit(main())
