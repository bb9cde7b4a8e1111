"""Replacements for functions of dbt templates."""

from __future__ import annotations

_REF = (
    "list the dataset under `inputs`, and write its alias: `- datasetRef: x` and `FROM x`; the "
    "order of datasets follows from their inputs"
)
_NEW_RECORDS = "write the query over all records: odfbuild computes it over the new ones"
INSTEAD_OF_DBT = {
    "ref": _REF,
    "source": _REF,
    "var": "write {{ x }} in a file NAME.yaml.j2, with `vars: {x: …}` in odfbuild.yaml",
    "env_var": "write {{ x }} in a file NAME.yaml.j2, and give it with `--var x=…`",
    "this": _NEW_RECORDS,
    "is_incremental": _NEW_RECORDS,
    "config": "say it in the definition: `merge`, `SetVocab`, or in odfbuild.yaml",
}
"""By the name that a template calls."""
