"""Datasets that are published under an identity of their own: `portals` of odfbuild.yaml."""

from __future__ import annotations

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Name
from odfbuild.values import Value


class Portal(Value):
    """The root dataset `name` gets all records of the dataset `of`, and tells nobody of that."""

    name: Name = setting(about="Name of a root dataset that is defined without a source")
    of: Name = setting(about="Name of the dataset whose records it gets")
