"""The decision whether a dataset runs."""

from __future__ import annotations

from odfbuild.errors import OdfbuildError
from odfbuild.plan.expected_input import ExpectedInput
from odfbuild.plan.model import Action, Pending, Reason, ReasonCode
from odfbuild.values import Value


class Verdict(Value, kw_only=True):
    """What to do (`RUN`, `POLL` or nothing), why, how much, and what readers have to expect.

    With a `refusal` the dataset must not be touched.
    """

    action: Action | None = None
    reasons: tuple[Reason, ...] = ()
    pending: Pending | None = None
    outlook: ExpectedInput | None = None
    refusal: OdfbuildError | None = None


UP_TO_DATE = (Reason(code=ReasonCode.UP_TO_DATE, message="nothing changed since the last run"),)
"""The one reason of idle datasets, shared because there can be thousands of them."""

IDLE = Verdict(reasons=UP_TO_DATE)
"""Nothing to do."""
