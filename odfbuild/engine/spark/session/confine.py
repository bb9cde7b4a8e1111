"""Run a program in a sandbox of the Linux kernel: no outgoing connections, few files.

Two of them, neither of which needs privileges or a container. Landlock lets the program read and
write only below given folders. A seccomp filter refuses to connect sockets or to send to addresses,
and to reach into other processes; answering those who connect works as ever. Root loses what it may
do beyond files. All of that holds for what the program starts, and nothing takes it away again.

Used as a program of its own, `python -I -S confine.py RULES COMMAND…`, because what happens between
fork and exec must not depend on the threads of the process that forks. `RULES` is JSON:
`{"offline": bool, "read": [folder…] | null, "write": [folder…]}`, where no list to read means that
files are not fenced. It ends with `FAILED` when the kernel refuses a fence.

Sources: landlock(7), seccomp(2), and the system call tables of Linux.
"""

# Imports nothing of odfbuild, so that it runs without any path to packages.
from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

FAILED = 97
"""Exit code when a fence could not be put up."""

_OLDEST_LANDLOCK = 2  # before, files could not be moved between folders
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_KEPT_CAPABILITIES = range(5)  # those of root over files of others, which Landlock limits
_CAPABILITIES = range(64)
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_KNOWN_RIGHTS = {2: 14, 3: 15, 4: 15}
"""By version of Landlock, how many rights on files it knows; 16 since version 5."""
_CONNECT_TCP = 1 << 1
_SCOPES = 0b11  # abstract sockets and signals of others, since version 6

_RET_ALLOW, _RET_ERRNO = 0x7FFF0000, 0x00050000
_MACHINES = {
    # AUDIT_ARCH, then numbers of: connect, sendto, sendmsg, sendmmsg, socket, ptrace,
    # process_vm_readv, process_vm_writev
    "x86_64": (0xC000003E, (42, 44, 46, 307, 41, 101, 310, 311)),
    "aarch64": (0xC00000B7, (203, 206, 211, 269, 198, 117, 270, 271)),
}
_IO_URING_SETUP, _PIDFD_GETFD = 425, 438
_X32 = 0x40000000
_AF_INET, _AF_INET6 = 2, 10


def main(arguments: list[str]) -> None:
    """Put the fences up and become the program; ends with `FAILED` if that is refused."""
    rules = json.loads(arguments[0])
    try:
        _drop_capabilities()
        _call_prctl(_PR_SET_NO_NEW_PRIVS, 1)
        if rules["read"] is not None:
            _fence_files(rules["read"], rules["write"], rules["offline"])
        if rules["offline"]:
            _fence_network()
    except OSError as error:
        sys.stderr.write(f"confine: {error}\n")
        sys.exit(FAILED)
    os.execv(arguments[1], arguments[1:])


def landlock_version() -> int:
    """Which Landlock the kernel offers; 0 for none that is of use."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        version = _syscall(_LANDLOCK_CREATE, None, 0, _VERSION_FLAG)
    except OSError:
        return 0
    return version if version >= _OLDEST_LANDLOCK else 0


def _drop_capabilities() -> None:
    """Keep root from what it could see of other processes, such as their environment.

    Without effect on other users, who have none of these capabilities.
    """
    for number in _CAPABILITIES:
        if number not in _KEPT_CAPABILITIES:
            with contextlib.suppress(OSError):  # a user without them, a kernel without that one
                _call_prctl(_PR_CAPBSET_DROP, number)


def _fence_files(read: Iterable[str], write: Iterable[str], offline: bool) -> None:
    version = landlock_version()
    if not version:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock of version 2 or newer")
    all_rights = (1 << _KNOWN_RIGHTS.get(version, 16)) - 1
    network = _CONNECT_TCP if offline and version >= 4 else 0
    attributes = struct.pack("=QQQ", all_rights, network, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _syscall(_LANDLOCK_CREATE, attributes, size, 0)
    for path in read:
        _allow(ruleset, path, _READ & all_rights)
    for path in write:
        _allow(ruleset, path, all_rights)
    _syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not Path(path).is_dir():
        rights &= _OF_FILES
    try:
        rule = struct.pack("=Qi", rights, descriptor)
        _syscall(_LANDLOCK_ADD, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def _fence_network() -> None:
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {os.uname().machine}")
    program = _filter(*machine)
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _call_prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(head))


def _filter(architecture: int, numbers: Sequence[int]) -> bytes:
    """The program for the kernel: instructions of struct sock_filter, 8 bytes each."""
    connect, sendto, sendmsg, sendmmsg, socket, ptrace, readv, writev = numbers
    never = (connect, sendmsg, sendmmsg, ptrace, readv, writev, _IO_URING_SETUP, _PIDFD_GETFD)

    def load(offset: int) -> bytes:
        return struct.pack("=HBBI", 0x20, 0, 0, offset)

    def jump(code: int, value: int, yes: int, no: int) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    def answer(value: int) -> bytes:
        return struct.pack("=HBBI", 0x06, 0, 0, value)

    equal, at_least = 0x15, 0x35
    refuse, allow = answer(_RET_ERRNO | errno.EACCES), answer(_RET_ALLOW)
    lines = [
        load(4),  # the architecture: another one has other numbers
        jump(equal, architecture, 1, 0),
        refuse,
        load(0),  # the number of the system call
        jump(at_least, _X32, 0, 1),
        refuse,
    ]
    for number in never:
        lines += [jump(equal, number, 0, 1), refuse]
    # sendto: only without an address, that is to who is connected already.
    lines += [
        jump(equal, sendto, 0, 6),
        load(16 + 8 * 4),
        jump(equal, 0, 0, 3),
        load(16 + 8 * 4 + 4),
        jump(equal, 0, 0, 1),
        allow,
        refuse,
    ]
    # socket: of the internet only; others could speak without connecting.
    lines += [
        jump(equal, socket, 0, 4),
        load(16),
        jump(equal, _AF_INET, 1, 0),
        jump(equal, _AF_INET6, 0, 1),
        allow,
        load(0),
        jump(equal, socket, 0, 1),
        refuse,
        allow,
    ]
    return b"".join(lines)


def _call_prctl(*arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    padded = (*arguments, *(0,) * (5 - len(arguments)))
    wide = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in padded]
    if library.prctl(*wide) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")


def _syscall(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = library.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return int(result)


if __name__ == "__main__":
    main(sys.argv[1:])
