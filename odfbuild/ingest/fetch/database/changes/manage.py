"""Create, drop and look at the replication slot and the publication of a source of changes.

Both have the name that the address tells. They belong to the server: nothing of them is kept here.
Source: PostgreSQL, "Logical Replication", "Replication Management Functions".
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.database.address import Wanted, named, quoted, wanted
from odfbuild.ingest.fetch.database.changes.facts import Facts, check_table, look
from odfbuild.ingest.fetch.database.changes.problems import may_not, slot_lost, unsuitable
from odfbuild.ingest.fetch.database.postgresql import Postgresql, open_postgresql
from odfbuild.ingest.secrets import remember_password, resolve_address
from odfbuild.ingest.settings import IngestSettings
from odfbuild.values import Value

MUCH_BYTES = 1 << 30
"""So much of a server's log is a reason to warn: it fills the server's disk."""

Made = Literal["created", "kept", "dropped", "absent"]


class SlotStatus(Value):
    """What a source of changes has on its server.

    `status` is `ready`, `absent`, `incomplete` (a slot or a publication alone, or one that does not
    fit), or `lost` (the server gave the slot up). The server keeps `held_bytes` of its log for it.
    """

    dataset: str
    slot: str
    status: Literal["ready", "absent", "incomplete", "lost"]
    held_bytes: int = 0
    in_use: bool = False

    @property
    def warning(self) -> str:
        """What should be done about it, as a sentence; empty: nothing."""
        if self.status == "ready":
            if self.held_bytes < MUCH_BYTES:
                return ""
            held = f"{self.held_bytes / (1 << 30):.1f} GiB of the server's log"
            return (
                f"{self.dataset}: the replication slot '{self.slot}' holds back {held}: run "
                f"`odfbuild apply -s {self.dataset}`, or `odfbuild source drop {self.dataset}`"
            )
        again = "" if self.status == "absent" else " --resnapshot"
        return (
            f"{self.dataset}: the replication slot '{self.slot}' is {self.status}: run "
            f"`odfbuild source create {self.dataset}{again}`"
        )


class ChangesSource:
    """The source of changes of one dataset; `template` is its address."""

    def __init__(self, dataset: str, template: str, settings: IngestSettings) -> None:
        self.dataset, self._settings = dataset, settings
        url = resolve_address(template)
        remember_password(url)
        self._asked: Wanted = wanted(url, template)
        self._shown = named(template)
        self.slot = self._asked.changes or ""

    def status(self) -> SlotStatus:
        """Ask the server. Raises `OdfbuildError`."""
        with open_postgresql(self._asked, self._settings, self._shown) as database:
            return self._status(look(database, self._asked))

    def create(self, *, again: bool) -> Made:
        """Create both, or both `again`; returns `kept` if they are there. Raises `OdfbuildError`.

        After a failure, there is what there was.
        """
        with open_postgresql(self._asked, self._settings, self._shown) as database:
            facts = look(database, self._asked)
            check_table(facts, self._asked, self._shown, None)
            self._refuse_foreign(facts)
            status = self._status(facts)
            if not again and status.status == "ready":
                return "kept"
            if not again and status.status != "absent":
                why = "the slot or the publication is gone, or is not as it was created"
                raise slot_lost(self._shown, self.slot, self.dataset, why)
            self._drop(database, facts)
            self._create(database, facts)
            return "created"

    def drop(self) -> Made:
        """Drop both, as far as they are there. Raises `OdfbuildError`."""
        with open_postgresql(self._asked, self._settings, self._shown) as database:
            facts = look(database, self._asked)
            self._refuse_foreign(facts)
            if facts.slot is None and facts.publication is None:
                return "absent"
            self._drop(database, facts)
            return "dropped"

    def _status(self, facts: Facts) -> SlotStatus:
        slot, publication = facts.slot, facts.publication
        if slot is None and publication is None:
            return SlotStatus(self.dataset, self.slot, "absent")
        if slot is None or publication is None or not slot.fits or not publication.complete:
            held = slot.held_bytes if slot is not None else 0
            return SlotStatus(self.dataset, self.slot, "incomplete", held)
        status: Literal["ready", "lost"] = "lost" if slot.lost else "ready"
        return SlotStatus(self.dataset, self.slot, status, slot.held_bytes, slot.active)

    def _refuse_foreign(self, facts: Facts) -> None:
        if facts.slot is not None and not facts.slot.fits:
            raise unsuitable(
                self._shown,
                f"the replication slot '{self.slot}' of {self._shown} is one of another database "
                "or another plugin",
                "use another name: `changes=NAME` in `fetch.url`",
            )

    def _create(self, database: Postgresql, facts: Facts) -> None:
        publication = self._statements(facts)[0]
        try:
            # Before the slot, so that it is there for all changes that the slot keeps.
            database.carry_out(publication)
            try:
                self._create_slot(database)
            except IngestError:
                with suppress(IngestError):
                    database.carry_out(f"DROP PUBLICATION {quoted(self.slot)}")
                raise
        except IngestError as error:
            what = f"creating the replication slot and the publication '{self.slot}'"
            raise self._may_not(error, what, self._statements(facts)) from None

    def _create_slot(self, database: Postgresql) -> None:
        # It waits for all transactions that are open.
        seconds = self._settings.idle_seconds
        database.carry_out(f"SET statement_timeout = {min(round(seconds * 1000), 2**31 - 1)}")
        database.rows(
            "SELECT slot_name::text FROM "
            f"pg_create_logical_replication_slot('{self.slot}', 'pgoutput')"
        )

    def _drop(self, database: Postgresql, facts: Facts) -> None:
        statements = []
        if facts.publication is not None:
            statements.append(f"DROP PUBLICATION {quoted(self.slot)}")
        if facts.slot is not None:
            statements.append(f"SELECT pg_drop_replication_slot('{self.slot}')")
        try:
            if facts.publication is not None:
                database.carry_out(statements[0])
            if facts.slot is not None:
                database.rows(
                    "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots "
                    f"WHERE slot_name = '{self.slot}'"
                )
        except IngestError as error:
            what = f"dropping the replication slot and the publication '{self.slot}'"
            raise self._may_not(error, what, statements) from None

    def _statements(self, facts: Facts) -> list[str]:
        return [
            f"CREATE PUBLICATION {quoted(self.slot)} FOR TABLE ONLY {facts.table.name}",
            f"SELECT pg_create_logical_replication_slot('{self.slot}', 'pgoutput')",
        ]

    def _may_not(self, error: IngestError, what: str, statements: list[str]) -> IngestError:
        if error.code in (Code.DATABASE_UNREACHABLE, Code.SLOT_IN_USE):
            return error
        return may_not(self._shown, what, error.notes, statements)
