"""Tell those whom the machine names of what a run, or a look at ages, found.

What each of them was told and still lasts is kept in the cache of the project: without it, a
failure is told again, and a recovery is not.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.inspect.alerts import Alert, Key, Seen, alert_for, of_ages, of_run
from odfbuild.project.model import Config
from odfbuild.store.disposable import read_disposable, write_disposable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odfbuild.inspect.ages import DatasetAge
    from odfbuild.project.settings.notifying import Notify
    from odfbuild.survey.outcome import ApplyOutcome

_STAMP = b"odfbuild told 1\n"


def tell_of_run(config: Config, outcome: ApplyOutcome) -> list[OdfbuildError]:
    """Send what a run found, unless it ran in a branch; why some could not be told."""
    return [] if config.branch is not None else _tell(config, of_run(outcome))


def tell_of_ages(config: Config, ages: Iterable[DatasetAge]) -> list[OdfbuildError]:
    """Send which datasets have become too old, or fresh again; why some could not be told."""
    return [] if config.branch is not None else _tell(config, of_ages(ages))


def _tell(config: Config, seen: Seen) -> list[OdfbuildError]:
    """Send what is new to each of `notify`; that one cannot be told stops nobody."""
    file = config.cache / "told.bin"
    told: dict[str, list[Key]] = read_disposable(file, _STAMP, dict[str, list[Key]]) or {}
    kept: dict[str, list[Key]] = {}
    errors = []
    for entry in config.notify:
        name = hashlib.sha256(repr(entry).encode()).hexdigest()
        before = told.get(name, [])
        alert, now = alert_for(entry, config.qualified_name, seen, before)
        kept[name] = sorted(now)
        if alert is None:
            continue
        try:
            _send(entry, alert)
        except OdfbuildError as error:
            errors.append(error)
            kept[name] = before
    if kept != told:
        write_disposable(file, _STAMP, kept)
    return errors


def _send(entry: Notify, alert: Alert) -> None:
    from odfbuild.exchange.messages import Email, mail, pipe, post
    from odfbuild.report.alert import alert_in, alert_subject, alert_text, alert_to_data

    if entry.webhook is not None:
        post(entry.webhook, alert_in(entry.form, alert))
    elif entry.server is not None and entry.sender is not None:
        email = Email(entry.sender, entry.email, alert_subject(alert), alert_text(alert))
        mail(entry.server, email)
    else:
        pipe(entry.command, alert_to_data(alert))
