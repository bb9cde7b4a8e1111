"""Ships the templates and schemas of the repository's top level inside the package."""

from setuptools import find_packages, setup

RESOURCES = ("schemas", "templates")

setup(
    packages=[
        *find_packages(include=["odfbuild*"]),
        *(f"odfbuild._resources.{name}" for name in RESOURCES),
    ],
    package_dir={f"odfbuild._resources.{name}": name for name in RESOURCES},
    package_data={
        "odfbuild": ["py.typed"],
        **{f"odfbuild._resources.{name}": ["**/*"] for name in RESOURCES},
    },
)
