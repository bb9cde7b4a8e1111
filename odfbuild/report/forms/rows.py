"""What reports say about a dataset: a line and its details, in any form of output."""

from __future__ import annotations

from odfbuild.errors import OdfbuildError
from odfbuild.plan.model import Action
from odfbuild.values import Value


class EventView(Value, kw_only=True):
    """An event that will be appended: its kind, where the definition says so, and its diff.

    With a `title` it is no event, but what that says.
    """

    kind: str
    place: str | None
    diff: tuple[str, ...]
    title: str | None = None


class Row(Value, kw_only=True):
    """A dataset and what happens to it; `what` is one line, the rest are details.

    `same_as` names a dataset above from the same template that is changed, or refused, in the same
    way; events or refusal are not shown again then. `then` is what follows the first action,
    `reasons` are those that the rest does not say, `causes` are all of them as trees.
    """

    name: str
    action: Action | None
    what: str
    place: str | None
    refusal: OdfbuildError | None = None
    events: tuple[EventView, ...] = ()
    same_as: str | None = None
    notes: tuple[str, ...] = ()
    then: tuple[Action, str] | None = None
    files: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    @property
    def sign(self) -> str:
        """The glyph of what happens first; `=`: nothing."""
        return self.action.value if self.action else "="

    @property
    def likeness(self) -> str | None:
        """What it has in common with the dataset `same_as`, in words."""
        if self.same_as is None:
            return None
        return "the same refusal" if self.action is Action.REFUSE else "the same change"
