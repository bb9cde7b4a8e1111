"""The forms of a passport, and the bytes of each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from odfbuild.errors import Code, EnvironmentProblem, PlanError
from odfbuild.extras import require_cryptography

if TYPE_CHECKING:
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace


class PassportForm(StrEnum):
    """A description for search engines or data portals, signed statements, or a contract."""

    croissant = "croissant"
    in_toto = "in-toto"
    odcs = "odcs"
    dcat = "dcat"

    @property
    def suffix(self) -> str:
        """What names of its files end with."""
        return _SUFFIXES[self]


_SUFFIXES = {
    PassportForm.croissant: "croissant.json",
    PassportForm.in_toto: "intoto.jsonl",
    PassportForm.odcs: "odcs.yaml",
    PassportForm.dcat: "dcat.json",
}


def form_of(file: str) -> PassportForm | None:
    """The form that a file in the folder of a dataset has by its name."""
    return next((form for form, name in _SUFFIXES.items() if name == file), None)


def passports_beside(config: Config, name: str, workspace: Workspace) -> Mapping[str, bytes]:
    """All forms of the passport of a dataset, by the names that they have in its folder.

    Without statements where the private key of the dataset is not here; errors as of `passport`.
    """
    found = {}
    for form in PassportForm:
        try:
            found[form.suffix] = passport(config, workspace, name, form)
        except EnvironmentProblem as error:
            if error.code != Code.NO_KEY_TO_SIGN:
                raise
    return found


def passport(config: Config, workspace: Workspace, name: str, form: PassportForm) -> bytes:
    """The passport of a dataset at its head; the same bytes for the same state and settings.

    `PlanError` E0301 for one without a chain, `IntegrityError` E0811 and E0813 where data files are
    missing or damaged, `EnvironmentProblem` E1650 where statements cannot be signed.
    """
    from odfbuild.exchange.passport.facts import facts_of

    state = workspace.projection(name)
    if state is None:
        raise PlanError(
            f"'{name}' has no chain yet",
            code="E0301",
            dataset=name,
            help="run `odfbuild apply` to create it",
        )
    if form is PassportForm.in_toto:
        require_cryptography("signed statements")
        key = workspace.private_keys.key(state.dataset_id)
        if key is None:
            raise EnvironmentProblem(
                f"the private key of '{name}' is not here, so its statements cannot be signed",
                code=Code.NO_KEY_TO_SIGN,
                dataset=name,
                notes=(f"dataset: {state.dataset_id}",),
                help="import it (`odfbuild key import FILE`), or ask the owner of the dataset for "
                "the statements",
            )
        from odfbuild.exchange.passport.in_toto import signed_statements

        return signed_statements(facts_of(config, workspace, name, state), key)
    facts = facts_of(config, workspace, name, state)
    if form is PassportForm.dcat:
        from odfbuild.exchange.passport.dcat import dcat_text

        return dcat_text(facts)
    if form is PassportForm.odcs:
        from odfbuild.exchange.passport.odcs import contract_text

        return contract_text(facts)
    from odfbuild.exchange.passport.croissant import croissant_text

    return croissant_text(facts)
