"""How datasets stand: by the plan, and by the clock. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from odfbuild.inspect.ages import DatasetAge, age_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.freshness import max_age
from odfbuild.report.datasets import statuses
from odfbuild.survey.survey import Survey

_TONES = {
    "up to date": "good",
    "refused": "bad",
    "no definition": "bad",
    "external": "plain",
    "not pulled": "plain",
    "waiting": "plain",
    "to be checked": "plain",  # what only apply asks for: it stays so, whatever is done
    "earlier query": "plain",
}
"""How a status is coloured; all others tell that something is to be done."""


@dataclass(frozen=True)
class Standing:
    """Of the datasets that were surveyed, at a time."""

    found: Survey
    at: Timestamp

    @cached_property
    def _by_plan(self) -> dict[str, str]:
        return statuses(self.found.plan)

    def status(self, name: str) -> str:
        """How a dataset stands by the plan."""
        return self._by_plan.get(name, "no definition")

    def tone(self, name: str) -> str:
        """The class that colours it: `good`, `busy`, `bad` or `plain`."""
        return _TONES.get(self.status(name), "busy")

    def age(self, name: str) -> DatasetAge:
        """How old it is, and may be."""
        state = self.found.projections.get(name)
        limit = max_age(self.found.project.config.freshness, name)
        return age_of(name, state.watermark if state else None, self.at, limit)
