"""Ships templates and schemas inside the package, and a README whose links work on its page."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

from setuptools import find_namespace_packages, find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
REPOSITORY = "https://github.com/odfbuild/odfbuild"
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "odfbuild" / "version.py").read_text())[1]


def fetch_site_libraries() -> bool:
    """Whether the scripts of the site are here; npm fetches them when a wheel is built.

    Without npm there is a wheel, too: its pages have no search and no drawings.
    """
    tool = ROOT / "tools" / "site_libraries"
    if (
        "bdist_wheel" in sys.argv
        and tool.exists()
        and not (ROOT / "vendored" / "LICENSES.txt").exists()
    ):
        subprocess.run([tool, "vendored"], cwd=ROOT, check=False)
    return (ROOT / "vendored" / "LICENSES.txt").exists()


DATA = ["schemas", "templates", *(["vendored"] if fetch_site_libraries() else [])]
FOLDERS = {f"odfbuild._resources.{name}": name for name in DATA}
# Setuptools takes every folder for a package, also one that holds only data.
RESOURCES = [
    *FOLDERS,
    *(
        f"{package}.{sub}"
        for package, top in FOLDERS.items()
        for sub in find_namespace_packages(top)
    ),
]


def readme() -> str:
    """The README for a package page, which has no files beside it: links lead to the release."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\1{REPOSITORY}/raw/v{VERSION}/", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{REPOSITORY}/blob/v{VERSION}/", text)


class BuildCompact(build_py):
    """Schemas without the white space for people; scripts of the site and texts compressed.

    That is more than half of their bytes.
    """

    def run(self) -> None:
        """Build as ever, then write these files anew."""
        super().run()
        for file in Path(self.build_lib).glob("odfbuild/_resources/schemas/*.json"):
            schema = json.loads(file.read_text(encoding="utf-8"))
            file.write_text(json.dumps(schema, separators=(",", ":"), ensure_ascii=False), "utf-8")
        built = Path(self.build_lib) / "odfbuild"
        texts = built / "report" / "error_codes.yaml"
        for file in (texts, *built.glob("_resources/vendored/*.*s")):
            compressed = gzip.compress(file.read_bytes(), mtime=0)
            file.with_name(f"{file.name}.gz").write_bytes(compressed)
            file.unlink()


setup(
    cmdclass={"build_py": BuildCompact},
    packages=[*find_packages(include=["odfbuild*"]), *RESOURCES],
    package_dir=FOLDERS,
    package_data={
        "odfbuild": ["py.typed"],
        "odfbuild.report": ["error_codes.yaml"],
        **{package: ["*"] for package in RESOURCES},
    },
    long_description=readme(),
    long_description_content_type="text/markdown",
)
