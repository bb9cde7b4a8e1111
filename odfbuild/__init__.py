"""odfbuild: a declarative, GitOps-style build tool for data."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odfbuild.api import Project

__all__ = ["Project", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the command line needs none of it to print its help.
    if name == "Project":
        from odfbuild.api import Project

        return Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
