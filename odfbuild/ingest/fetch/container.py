"""Data that a program in an OCI container prints.

The contract: the state of the last run comes in as environment variables, the new one goes out as
files in `/opt/odf/out`, the data is standard output, complaints are standard error. Source:
specification, `FetchStep::Container`; reference behaviour, container contract.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.result import ETAG, LAST_MODIFIED, Fetched, etag, last_modified
from odfbuild.ingest.prepare import exit_text
from odfbuild.ingest.process import Finished, run_to_file
from odfbuild.ingest.secrets import remember, resolve, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStepContainer, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

_OUT = "/opt/odf/out"
_ETAG, _MODIFIED, _MORE = "new-etag", "new-last-modified", "new-has-more-data"
_BATCH = "ODF_BATCH_SIZE"
_RUNTIMES = ("podman", "docker", "nerdctl")
_NO_IMAGE = 125
_STOP_SECONDS = 30
_LONGEST_STATE = 65536


class _Run(Value):
    data: Path
    state: SourceState | None
    has_more: bool


def fetch_container(
    step: FetchStepContainer, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Run the container, again while it says that it has more. Raises `IngestError`."""
    runtime = _runtime(context.settings)
    image = resolve(step.image)
    number = 0
    while True:
        out = context.scratch / f"container-{number}"
        run = _run(step, image, state, runtime, out, context)
        size = run.data.stat().st_size
        if run.state is not None and run.state == state:
            if size:
                raise _broken(
                    step, "it printed data, but says by its state that there is nothing new"
                )
            return
        if size or run.state is not None:
            yield Fetched(run.data if size else None, run.state, None, step.image)
        shutil.rmtree(out, ignore_errors=True)
        if not run.has_more:
            return
        if run.state is None:
            raise _broken(step, "it says that it has more data, but not from where to go on")
        state = run.state
        number += 1


def _run(
    step: FetchStepContainer,
    image: str,
    state: SourceState | None,
    runtime: tuple[str, ...],
    out: Path,
    context: FetchContext,
) -> _Run:
    mounted = out / "out"
    mounted.mkdir(parents=True)
    # The program may run as any user of its image.
    mounted.chmod(0o777)
    settings = context.settings
    name = f"odfbuild-{uuid.uuid4().hex}"
    environ = _environment(step, state, settings)
    # Without `--rm`: once the container is gone, podman behind Docker's command line calls every
    # exit a success.
    command = [*runtime, "run", "--name", name, "--volume", f"{mounted}:{_OUT}:rw"]
    command += settings.container_arguments
    # Values go through our own environment: arguments can be read by everybody on the machine.
    command += [f"--env={key}" for key in environ]
    entrypoint, *rest = step.command or ("",)
    if entrypoint:
        command.append(f"--entrypoint={entrypoint}")
    command += [image, *rest, *(resolve(argument) for argument in step.args or ())]
    data = out / "stdout"
    try:
        finished = run_to_file(
            command,
            data,
            folder=context.root,
            environ={**os.environ, **environ},
            seconds=settings.total_seconds,
            most_bytes=settings.max_bytes,
            on_stop=lambda: _end(runtime, name),
        )
    except OSError as error:
        raise EnvironmentProblem(
            f"the container runtime '{runtime[0]}' cannot be started: {error.strerror or error}",
            code="E0904",
            help="correct ODFBUILD_CONTAINER_RUNTIME, or `ingest.container` in machine.yaml",
        ) from None
    finally:
        _remove(runtime, name)
    if finished.status != 0 or finished.stopped:
        raise _failed(step, runtime, finished)
    return _Run(data, _new_state(step, mounted), (mounted / _MORE).exists())


def _runtime(settings: IngestSettings) -> tuple[str, ...]:
    if settings.container_runtime:
        return settings.container_runtime
    for name in _RUNTIMES:
        if shutil.which(name):
            return (name,)
    raise EnvironmentProblem(
        "no container runtime is on the path",
        code="E0904",
        help="install podman, docker or nerdctl, or name another one that has their command "
        "line in ODFBUILD_CONTAINER_RUNTIME, or by `ingest.container.runtime` in machine.yaml",
    )


def _environment(
    step: FetchStepContainer, state: SourceState | None, settings: IngestSettings
) -> Mapping[str, str]:
    environ = {
        "ODF_ETAG": state.value if state is not None and state.kind == ETAG else "",
        "ODF_LAST_MODIFIED": (
            state.value if state is not None and state.kind == LAST_MODIFIED else ""
        ),
        "ODF_NEW_ETAG_PATH": f"{_OUT}/{_ETAG}",
        "ODF_NEW_LAST_MODIFIED_PATH": f"{_OUT}/{_MODIFIED}",
        "ODF_NEW_HAS_MORE_DATA_PATH": f"{_OUT}/{_MORE}",
        _BATCH: str(settings.target_records),
    }
    for variable in step.env or ():
        if variable.value is not None:
            environ[variable.name] = resolve(variable.value)
        elif variable.name in os.environ:
            environ[variable.name] = os.environ[variable.name]
            remember(environ[variable.name])
        else:
            raise IngestError(
                f"the environment variable {variable.name}, which the container needs, is not set",
                code="E0408",
                help=f"set {variable.name}, or give it a `value` in `fetch.env`",
            )
    return environ


def _new_state(step: FetchStepContainer, mounted: Path) -> SourceState | None:
    tag = _written(step, mounted / _ETAG)
    if tag is not None:
        return etag(tag)
    text = _written(step, mounted / _MODIFIED)
    if text is None:
        return None
    try:
        return last_modified(Timestamp.parse(text.strip()))
    except ValueError:
        raise _broken(step, f"it wrote '{text.strip()[:80]}' as time of modification") from None


def _written(step: FetchStepContainer, file: Path) -> str | None:
    """What the program wrote into a file; a link to a file of this machine is not followed."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _broken(step, f"{file.name} cannot be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _broken(step, f"{file.name} is not a file")
        data = os.read(descriptor, _LONGEST_STATE + 1)
    finally:
        os.close(descriptor)
    try:
        if len(data) > _LONGEST_STATE:
            raise ValueError
        return data.decode()
    except ValueError:
        raise _broken(
            step, f"{file.name} is not text of at most {_LONGEST_STATE:,} bytes"
        ) from None


def _end(runtime: tuple[str, ...], name: str) -> None:
    # Removing by force alone would first ask the program nicely, and wait.
    _tell(runtime, "kill", name)
    _remove(runtime, name)


def _remove(runtime: tuple[str, ...], name: str) -> None:
    _tell(runtime, "rm", "--force", "--volumes", name)


def _tell(runtime: tuple[str, ...], *command: str) -> None:
    """Run a command that may fail: there may be no container (any more)."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [*runtime, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_STOP_SECONDS,
            check=False,
        )


def _broken(step: FetchStepContainer, reason: str) -> IngestError:
    return IngestError(
        f"the container {step.image} breaks the contract: {reason}",
        code="E0415",
        help="correct the program: state and times (RFC 3339) go to the files that "
        "ODF_NEW_ETAG_PATH and ODF_NEW_LAST_MODIFIED_PATH name",
    )


def _failed(step: FetchStepContainer, runtime: tuple[str, ...], finished: Finished) -> IngestError:
    if finished.stopped:
        reason = f"was stopped: {finished.stopped}"
        help = "raise `ingest.totalSeconds` or `ingest.maxBytes` in odfbuild.yaml"
    elif finished.status == _NO_IMAGE:
        reason = f"could not be started by {runtime[0]}"
        help = f"try it by hand: {runtime[0]} run --rm {step.image}"
    else:
        reason = f"failed with {exit_text(finished.status)}"
        help = "what it prints to standard error should say why"
    return IngestError(
        f"the container {step.image} {reason}",
        code="E0415",
        notes=tuple(scrub(f"it says: {line}") for line in finished.complaints),
        help=help,
    )
