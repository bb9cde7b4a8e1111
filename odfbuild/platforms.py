"""Where odfbuild works: it needs file locks of Unix, which Windows has inside WSL only."""

from __future__ import annotations

UNSUPPORTED = (
    "odfbuild works on Linux and macOS, and on Windows inside WSL "
    "(https://learn.microsoft.com/windows/wsl): this Python has no file locks of Unix (fcntl)."
)


def is_supported() -> bool:
    """Whether this Python has what chains are locked with."""
    try:
        import fcntl  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True
