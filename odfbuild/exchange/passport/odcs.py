"""The passport as a data contract of the Open Data Contract Standard 3.1. Pure.

It promises what readers see without the system columns: schema, checks and age. A file of it can be
named under `contracts` in odfbuild.yaml. Source: Open Data Contract Standard 3.1.0.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from odfbuild.exchange.passport.facts import Facts
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.project.odcs.contract import SECONDS
from odfbuild.project.odcs.quality import Rule, rules_of
from odfbuild.project.odcs.types import logical_type

Data = dict[str, Any]


def contract(facts: Facts) -> Data:
    """The contract as plain data."""
    info, license = facts.state.info, facts.state.license
    purpose = info.description if info else None
    limits = f"{license.name}: {license.website_url}" if license else None
    description = {"purpose": purpose, "limitations": limits}
    said = {key: text for key, text in description.items() if text}
    names = facts.vocabulary
    ours = (names.offset, names.operation_type, names.system_time)
    of_columns, of_dataset = rules_of(facts.checks)
    columns = [
        _property(each, facts.description_of(each), of_columns.get(each.name, []))
        for each in facts.fields
        if each.name not in ours
    ]
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": str(facts.state.dataset_id),
        "name": facts.name,
        "version": facts.version,
        "status": "active",
        **({"tags": list(info.keywords)} if info and info.keywords else {}),
        **({"description": said} if said else {}),
        **(
            {"team": {"name": ", ".join(facts.owners), "members": _members(facts.owners)}}
            if facts.owners
            else {}
        ),
        "schema": [
            {
                "name": facts.name,
                "logicalType": "object",
                "physicalType": "table",
                **({"properties": columns} if columns else {}),
                **({"quality": of_dataset} if of_dataset else {}),
            }
        ],
        **_age(facts.max_age, f"{facts.name}.{names.event_time}"),
        "contractCreatedTs": str(facts.created),
    }


def contract_text(facts: Facts) -> bytes:
    """The file of the contract."""
    import yaml

    text = yaml.safe_dump(contract(facts), sort_keys=False, allow_unicode=True, width=100)
    return text.encode()


def _members(owners: tuple[str, ...]) -> list[Data]:
    return [{"username": each, "role": "owner"} for each in owners]


def _property(field: arrow.Field, description: str | None, rules: list[Rule]) -> Data:
    return {
        **_named(field, description),
        **({} if field.nullable else {"required": True}),
        **({"quality": rules} if rules else {}),
    }


def _named(field: arrow.Field, description: str | None = None) -> Data:
    kind = field.type
    return {
        "name": field.name,
        "logicalType": logical_type(kind),
        "physicalType": ddl_of(kind),
        **({"description": description} if description else {}),
        **({"items": _item(kind.item.type)} if logical_type(kind) == "array" else {}),
        **({"properties": [_named(e) for e in kind.fields]} if kind.name == "struct" else {}),
    }


def _item(kind: arrow.Type) -> Data:
    return {
        each: text for each, text in _named(arrow.Field("item", kind)).items() if each != "name"
    }


def _age(age: timedelta | None, element: str) -> Data:
    if age is None:
        return {}
    seconds = int(age.total_seconds())
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % SECONDS[unit] == 0)
    value = seconds // SECONDS[unit]
    sla = {"property": "latency", "value": value, "unit": unit, "element": element}
    return {"slaProperties": [sla]}
