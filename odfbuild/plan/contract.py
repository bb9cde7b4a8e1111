"""What a dataset does not keep of a data contract, by its definition, its chain and its settings.

Whoever reads the dataset counts on the contract, so a breach is a breaking change: the plan refuses
the dataset. Says nothing of columns that only data can tell. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from odfbuild.errors import Code, PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.project.odcs.contract import Contract, Path, PromisedColumn
from odfbuild.project.odcs.quality import is_kept
from odfbuild.project.odcs.types import logical_type, physical_type
from odfbuild.records.checks import Asked, NotNull
from odfbuild.wording import did_you_mean


def breaches(
    dataset: str,
    contract: Contract,
    known: KnownColumns,
    state: Projection | None,
    asked: Sequence[Asked],
    max_age: timedelta | None,
) -> Iterator[PlanError]:
    """Each promise that is not kept, with its place in the contract.

    `state` is what the chain says, `asked` are the checks of the dataset, `max_age` is the age that
    `freshness` in odfbuild.yaml allows it (`None`: nothing is said there).
    """
    relation = known.relation(dataset)
    columns = None if relation is None else {each.name: each.type for each in relation}
    fields = () if state is None or state.schema is None else read_schema(state.schema).fields
    # A column that has records keeps its type, also where only the engine knows that of a query.
    committed = {each.name: each.type for each in fields}
    if columns is not None:
        columns = {name: kind or committed.get(name) for name, kind in columns.items()}
        for promised in contract.columns:
            yield from _column(dataset, contract, promised, columns)
    never_null = {each.name for each in fields if not each.nullable} | _of_system(dataset, known)
    for each in contract.checks:
        check = each.check
        # Before there is a schema, only the engine knows what may be missing; and of a column that
        # is not there, that was said.
        if isinstance(check, NotNull) and (
            not fields
            or check.column in never_null
            or (columns is not None and check.column not in columns)
        ):
            continue
        if not is_kept(check, asked):
            yield _breach(
                f"'{dataset}' breaks its contract: nothing checks `{check}`",
                Code.CONTRACT_CHECK,
                dataset,
                contract,
                each.path,
                "declare it under `checks` in odfbuild.yaml with the severity `error`, or change "
                "the contract",
            )
    if contract.max_age is not None and (max_age is None or max_age > contract.max_age):
        allowed = "any age" if max_age is None else f"an age of {max_age}"
        yield _breach(
            f"'{dataset}' breaks its contract: it may have {allowed}, and {contract.max_age} is "
            "promised",
            Code.CONTRACT_AGE,
            dataset,
            contract,
            contract.age_path,
            "set `maxAge` under `freshness` in odfbuild.yaml to what is promised, or less, or "
            "change the contract",
        )


def _column(
    dataset: str,
    contract: Contract,
    promised: PromisedColumn,
    columns: dict[str, arrow.Type | None],
) -> Iterator[PlanError]:
    if promised.name not in columns:
        yield _breach(
            f"'{dataset}' breaks its contract: it has no column '{promised.name}'",
            Code.CONTRACT_COLUMN,
            dataset,
            contract,
            promised.path,
            did_you_mean(promised.name, columns, "add the column, or change the contract"),
        )
        return
    found = columns[promised.name]
    if found is None:
        return
    logical, physical = logical_type(found), physical_type(promised.physical or "")
    wanted = promised.logical
    if physical is not None and physical != found:
        wanted = promised.physical
    elif wanted is None or wanted == logical or (wanted, logical) == ("map", "object"):
        return
    yield _breach(
        f"'{dataset}' breaks its contract: '{promised.name}' is {ddl_of(found)}, and {wanted} "
        "is promised",
        Code.CONTRACT_TYPE,
        dataset,
        contract,
        promised.path,
        "give the column its former type, or change the contract",
    )


def _of_system(dataset: str, known: KnownColumns) -> set[str]:
    """Columns that odfbuild fills."""
    names = known.vocabulary(dataset)
    return {names.offset, names.operation_type, names.system_time}


def _breach(
    message: str, code: str, dataset: str, contract: Contract, path: Path, help: str
) -> PlanError:
    return PlanError(
        message,
        code=code,
        dataset=dataset,
        location=contract.place(path),
        notes=("readers count on the contract, so this is a breaking change",),
        help=help,
    )
