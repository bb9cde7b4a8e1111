"""What Dagster does with a project; run in an environment that has Dagster, by its tests.

Arguments: the project, the program that builds it, and names of assets to materialise (none: all).
Instead of names, `--checks`: run checks alone. Prints JSON on the last line.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import dagster as dg

from odfbuild.integrations.dagster import OdfbuildResource, asset_key, odfbuild_assets

FOLDER, PROGRAM, *NAMES = sys.argv[1:]
odfbuild = OdfbuildResource(project=FOLDER, program=[PROGRAM])
assets = odfbuild_assets(odfbuild)


def name(key: Any) -> str:
    return ".".join(key.path)


instance = dg.DagsterInstance.ephemeral()
done = dg.materialize(
    [assets],
    selection=dg.AssetSelection.all_asset_checks()
    if NAMES == ["--checks"]
    else [asset_key(each) for each in NAMES] or None,
    resources={"odfbuild": odfbuild},
    instance=instance,
    raise_on_error=False,
)
observed = [
    each.asset_key
    for spec in assets.specs
    for each in instance.fetch_observations(spec.key, 9).records
]
failed = [e for e in done.all_events if e.is_step_failure]
print(
    json.dumps(
        {
            "success": done.success,
            "assets": {
                name(spec.key): {
                    "deps": sorted(name(each.asset_key) for each in spec.deps),
                    "group": spec.group_name,
                    "owners": list(spec.owners),
                    "description": spec.description,
                    "fresh": spec.freshness_policy is not None,
                }
                for spec in assets.specs
            },
            "materialized": {
                name(each.asset_key): {
                    key: value.value for key, value in each.materialization.metadata.items()
                }
                for each in done.get_asset_materialization_events()
            },
            "unchanged": sorted(map(name, observed)),
            "checks": {
                f"{name(each.asset_key)} {each.check_name}": [each.passed, each.description]
                for each in done.get_asset_check_evaluations()
            },
            "failure": failed[0].event_specific_data.user_failure_data.description
            if failed
            else None,
        }
    )
)
