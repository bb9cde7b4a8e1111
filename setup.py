"""Ships the templates and schemas of the repository's top level inside the package."""

from setuptools import find_namespace_packages, find_packages, setup

FOLDERS = {f"odfbuild._resources.{name}": name for name in ("schemas", "templates")}
# Setuptools takes every folder for a package, also one that holds only data.
RESOURCES = [
    *FOLDERS,
    *(
        f"{package}.{sub}"
        for package, top in FOLDERS.items()
        for sub in find_namespace_packages(top)
    ),
]

setup(
    packages=[*find_packages(include=["odfbuild*"]), *RESOURCES],
    package_dir=FOLDERS,
    package_data={
        "odfbuild": ["py.typed", "__init__.pyi"],
        "odfbuild.report": ["error_codes.yaml"],
        **{package: ["*"] for package in RESOURCES},
    },
)
