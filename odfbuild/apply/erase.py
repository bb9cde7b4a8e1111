"""Erase subjects: destroy their keys, say so beside the chains, write tables anew.

The keys go first: a process that is killed behind that leaves nothing that can be read. A
second run adds the statements that are missing; what was said is not said twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from odfbuild.apply.tables import publish_table
from odfbuild.errors import PersonalDataError
from odfbuild.inspect.subjects import SubjectRecords, records_of_subjects, steps_that_read
from odfbuild.odf.stewardship import Erasure
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.git.person import who_acts
from odfbuild.project.model import Config
from odfbuild.project.settings.personal import subjects_of
from odfbuild.project.subject_keys import required_keys
from odfbuild.project.tables import Table, declared_tables
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.stewardship import erasures, sign_statement
from odfbuild.store.subject_keys import KeyStore
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import Status, TableOutcome
from odfbuild.values import Value


class ErasurePlan(Value, kw_only=True):
    """What erasing `subjects` would do.

    `with_keys` is how many of them have a key. `found` are their records in datasets of this
    project, `of_others` datasets that others own and that have records of them. `steps` counts
    steps of derivatives that read such records: they cannot be recomputed any more. `tables` are
    published tables that are written anew.
    """

    subjects: tuple[str, ...]
    with_keys: int
    found: tuple[SubjectRecords, ...]
    of_others: tuple[SubjectRecords, ...]
    steps: dict[str, int]
    tables: tuple[str, ...]

    @property
    def records(self) -> int:
        """Records of these subjects in datasets of this project."""
        return sum(sum(each.records.values()) for each in self.found)


class Erased(Value, kw_only=True):
    """What was done: keys destroyed, datasets with a new statement, tables written anew."""

    keys: int
    stated: tuple[str, ...]
    tables: tuple[TableOutcome, ...]


def plan_erasure(config: Config, workspace: Workspace, subjects: Collection[str]) -> ErasurePlan:
    """Look for the records of subjects; changes nothing.

    `PersonalDataError` E1627 where no keys are configured, E1626 where a statement could not be
    signed, E1628 without a subject.
    """
    wanted = tuple(sorted({each for each in subjects if each}))
    if not wanted:
        raise PersonalDataError(
            "no subject is named",
            code="E1628",
            help="give values of the column that `subject` of `personal` in odfbuild.yaml names",
        )
    keys = required_keys(config)
    states = workspace.readable()
    found, of_others = [], []
    for name, state in states.items():
        columns = set(subjects_of(config.personal, name).values())
        if not columns:
            continue
        records = records_of_subjects(workspace.dataset(name), state.head, columns, wanted)
        if not records.records:
            continue
        if workspace.private_keys.place(state.dataset_id) is not None:
            found.append(records)
        elif _is_of_others(workspace, name):
            of_others.append(records)
        else:
            raise PersonalDataError(
                f"the private key of '{name}' is not here, and a statement about it has to be "
                "signed",
                code="E1626",
                dataset=name,
                notes=(f"dataset: {state.dataset_id}", "nothing was changed"),
                help="run the command where the key is, or import it: `odfbuild key import FILE`",
            )
    tables = _tables(config, found)
    return ErasurePlan(
        subjects=wanted,
        with_keys=len(keys.keys(wanted)),
        found=tuple(found),
        of_others=tuple(of_others),
        steps=steps_that_read(workspace, states, found),
        tables=tuple(each.name for each in tables),
    )


def erase(
    config: Config, workspace: Workspace, plan: ErasurePlan, waiting: Waiting = NOT_WAITING
) -> Erased:
    """Do what a plan says, with no other process at work on these datasets.

    Records that came since are looked for again.
    """
    keys, names = required_keys(config), [each.dataset for each in plan.found]
    with workspace.claim(names, waiting) as claim:
        for name, holder in claim.held.items():
            raise held_elsewhere(name, holder)
        destroyed = keys.destroy(plan.subjects)
        now = plan_erasure(config, workspace, plan.subjects)
        stated = [e.dataset for e in now.found if _state(config, workspace, keys, e)]
    tables = tuple(_written(config, workspace, _tables(config, now.found)))
    return Erased(keys=destroyed, stated=tuple(stated), tables=tables)


def _written(
    config: Config, workspace: Workspace, tables: Sequence[Table]
) -> Iterator[TableOutcome]:
    """Write tables anew, and remove their earlier states at once: these have the values, too."""
    if not tables:
        return
    from odfbuild.inspect.tables import collect_tables

    for table in tables:
        outcome = publish_table(config, workspace, table)
        cleaned = collect_tables(config, workspace, [table], timedelta(), dry_run=False)
        error = next((each.error for each in cleaned if each.error is not None), None)
        if outcome.error is None and error is not None:
            outcome = replace(outcome, status=Status.FAILED, error=error)
        yield outcome


def _state(config: Config, workspace: Workspace, keys: KeyStore, found: SubjectRecords) -> bool:
    """Say that these subjects are erased, unless that was said; whether it is news."""
    store = workspace.dataset(found.dataset)
    state = workspace.projection(found.dataset)
    assert state is not None, "it has records"
    known = {name for said in erasures(store.statements()) for name in said.subjects}
    names = keys.names_of(found.records)
    new = {subject for subject, name in names.items() if name not in known}
    if not new:
        return False
    columns = set(subjects_of(config.personal, found.dataset).values())
    records = records_of_subjects(store, state.head, columns, new)
    statement = Erasure(
        dataset_id=state.dataset_id,
        time=Timestamp.now(),
        by=who_acts(config.root),
        head=state.head,
        records=sum(records.records.values()),
        subjects=tuple(sorted(names[each] for each in new)),
        numbers=records.numbers,
    )
    store.add_statements([sign_statement(workspace.private_keys, statement, store.name)])
    return True


def _is_of_others(workspace: Workspace, name: str) -> bool:
    elsewhere = workspace.elsewhere
    return elsewhere is not None and elsewhere.owner(workspace.dataset(name)) is not None


def _tables(config: Config, found: Sequence[SubjectRecords]) -> list[Table]:
    if not config.tables or not found:
        return []
    return list(declared_tables(config, [each.dataset for each in found]))
