"""Data contracts that datasets keep to: `contracts` of odfbuild.yaml."""

from __future__ import annotations

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.values import Value


class Contracted(Value):
    """Datasets whose name matches keep to the contract in a file; all entries that match count."""

    match: Patterns = setting()
    file: Name = setting(about="File of the contract, in the form of ODCS, from the project folder")
