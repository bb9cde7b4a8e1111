"""odfbuild: a declarative, GitOps-style build tool for data."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odfbuild.api import Project
    from odfbuild.version import __version__

__all__ = ["Project", "__version__"]


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the command line needs none of it to print its help.
    if name == "Project":
        from odfbuild.api import Project

        return Project
    if name == "__version__":
        from odfbuild.version import __version__

        return __version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
