"""What of a difference may leave the machine: numbers always, values where `show` lets them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from odfbuild.inspect.data_diff.model import Comparison, DataDiff, Sample
from odfbuild.project.settings.showing import Showing, ShownColumns

HIDDEN = "values are not shown: `show` in odfbuild.yaml does not let them out"
SOME_HIDDEN = "values of some columns are not shown: `show` in odfbuild.yaml hides them"


def shown(found: Comparison, showing: Showing) -> Comparison:
    """The same, of each dataset with no values but those that `showing` lets out."""
    return replace(found, diffs=tuple(_shown(each, showing) for each in found.diffs))


def _shown(found: DataDiff, showing: Showing) -> DataDiff:
    allowed = showing.of(found.dataset)
    if allowed is None:
        notes = (*found.notes, HIDDEN) if found.samples or found.drift else found.notes
        return replace(found, samples=(), drift=(), notes=notes)
    samples = tuple(each for sample in found.samples if (each := _sample(sample, allowed)))
    drift = tuple(each for each in found.drift if allowed.allow(each.column))
    hides = samples != found.samples or drift != found.drift
    notes = (*found.notes, SOME_HIDDEN) if hides else found.notes
    return replace(found, samples=samples, drift=drift, notes=notes)


def _sample(sample: Sample, allowed: ShownColumns) -> Sample | None:
    """A record as far as it may be shown; `None`: nothing of what it is about."""

    def part(values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: value for name, value in values.items() if allowed.allow(name)}

    old, new, key = part(sample.old), part(sample.new), part(sample.key)
    if not (old or new) and (sample.old or sample.new):
        return None
    return replace(sample, key=key, old=old, new=new)
