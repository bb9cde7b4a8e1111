"""How long branches are kept: `branches` of odfbuild.yaml."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from odfbuild.declared_settings import setting
from odfbuild.project.settings.freshness import age, parse_age
from odfbuild.values import Value


class BranchSettings(Value, kw_only=True):
    """Settings of branches."""

    keep: Annotated[timedelta, age(parse_age)] = setting(
        timedelta(days=14),
        "How long `gc` keeps closed branches (promoted, or their Git branch is merged or gone)",
    )
