"""Ships the templates and schemas of the repository's top level inside the package."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["odfbuild*"]), "odfbuild.schemas", "odfbuild.templates"],
    package_dir={"odfbuild.schemas": "schemas", "odfbuild.templates": "templates"},
    package_data={
        "odfbuild": ["py.typed"],
        "odfbuild.schemas": ["*"],
        "odfbuild.templates": ["**/*"],
    },
)
