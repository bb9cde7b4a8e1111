"""Passports of datasets, for those who do not use odfbuild."""

from __future__ import annotations

from typing import Literal

from odfbuild.api.base import Base


class Passports(Base):
    """What datasets are and where they come from, in the words of standards."""

    def passport(
        self, dataset: str, form: Literal["croissant", "in-toto", "odcs", "dcat"] = "croissant"
    ) -> bytes:
        """A description of a dataset, signed statements of its steps, or a data contract.

        `croissant` is JSON-LD (Croissant 1.1 with PROV), `in-toto` one signed envelope a line,
        `odcs` YAML (Open Data Contract Standard 3.1), `dcat` JSON-LD (DCAT-AP 3). The bytes follow
        from the dataset and the settings alone. Data files that are not here are brought.
        `EnvironmentProblem` E1650 where the private key of the dataset is not here, which signs
        statements.

        >>> project.passport("derived")[:1]
        b'{'
        """
        from odfbuild.exchange.passport.forms import PassportForm, passport

        workspace, name = self._existing(dataset)
        return passport(self.config(), workspace, name, PassportForm(form))
