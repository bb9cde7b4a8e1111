"""`odfbuild version`."""

from __future__ import annotations

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions


def version(state: Context, as_json: JsonOptions) -> int:
    """Show the version of odfbuild and of its engine."""
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    from odfbuild.version import __version__

    def release(name: str) -> str:
        try:
            return installed(name)
        except PackageNotFoundError:
            return "not installed"

    versions = {
        "odfbuild": __version__,
        "python": platform.python_version(),
        **{name: release(name) for name in ("pyspark", "pyarrow", "flatbuffers")},
    }
    if as_json:
        state.console.data(versions)
    else:
        state.console.result("\n".join(f"{name} {number}" for name, number in versions.items()))
    return 0
