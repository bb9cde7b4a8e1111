"""Merge strategies said once more, in plain Python over lists of records: a second opinion.

A record is a dict; `op` is 0 append, 1 retract, 2 and 3 correct from and to. Slow and obvious.
"""

from typing import Any

Record = dict[str, Any]


def merge(
    strategy: str,
    history: list[Record],
    batch: list[Record],
    *,
    key: list[str],
    compare: list[str] | None = None,
    event_time: str = "event_time",
    fallback: Any = None,
) -> list[Record]:
    """Records that join `history`, in their order; those without event time get `fallback`."""

    def filled(row: Record) -> Record:
        return {**row, event_time: fallback} if row[event_time] is None else row

    if event_time in key:
        batch = [filled(row) for row in batch]
    match strategy:
        case "Append":
            found = [{**row, "op": 0} for row in batch]
        case "Ledger":
            seen = {_key(row, key) for row in history}
            found = [{**row, "op": 0} for row in batch if _key(row, key) not in seen]
        case "ChangelogStream":
            return [filled(row) for row in _by_key(_changelog(batch, key), key)]
        case "UpsertStream":
            last = {_key(row, key): {"op": 0, **row} for row in batch}
            changes = _changes(project(history, key), list(last.values()), key, None, event_time)
            return [filled(row) for row in _by_key(changes, key)]
        case "Snapshot":
            state = project(history, key)
            rows = [{**row, "op": 0} for row in batch]
            changes = _changes(state, rows, key, compare, event_time)
            present = {_key(row, key) for row in batch}
            changes += [[{**row, "op": 1}] for k, row in state.items() if k not in present]
            return [filled(row) for row in _by_key(changes, key)]
    found = [filled(row) for row in found]
    return sorted(found, key=lambda row: row[event_time])


def project(ledger: list[Record], key: list[str]) -> dict[tuple[Any, ...], Record]:
    """The latest record of each key, unless it was retracted."""
    state: dict[tuple[Any, ...], Record] = {}
    for row in ledger:
        if row["op"] == 1:
            state.pop(_key(row, key), None)
        elif row["op"] != 2:
            state[_key(row, key)] = row
    return state


def _changes(
    state: dict[tuple[Any, ...], Record],
    rows: list[Record],
    key: list[str],
    compare: list[str] | None,
    event_time: str,
) -> list[list[Record]]:
    """Groups of operations that belong together: one record, or both sides of a correction."""
    found = []
    for row in rows:
        old = state.get(_key(row, key))
        names = compare or [name for name in row if name not in (*key, "op")]
        if event_time in names and row[event_time] is None:
            names = [name for name in names if name != event_time]
        if row["op"] == 1:
            if old is not None:
                found.append([{**old, "op": 1}])
        elif old is None:
            found.append([{**row, "op": 0}])
        elif any(row[name] != old.get(name) for name in names):
            found.append([{**old, "op": 2}, {**row, "op": 3}])
    return found


def _changelog(batch: list[Record], key: list[str]) -> list[list[Record]]:
    """Operations in their order; the n-th "to" of a key stands behind its n-th "from"."""
    groups: list[list[Record]] = []
    starts: dict[tuple[Any, ...], list[list[Record]]] = {}
    for row in batch:
        group = [row]
        groups.append(group)
        if row["op"] == 2:
            starts.setdefault(_key(row, key), []).append(group)
    taken: dict[tuple[Any, ...], int] = {}
    for group in list(groups):
        row = group[0]
        if row["op"] != 3:
            continue
        nth = taken.get(_key(row, key), 0)
        taken[_key(row, key)] = nth + 1
        if nth < len(starts.get(_key(row, key), ())):
            starts[_key(row, key)][nth].append(row)
            group.clear()
    return [group for group in groups if group]


def _by_key(groups: list[list[Record]], key: list[str]) -> list[Record]:
    """Nulls first; what has the same key keeps its order."""
    ordered = sorted(groups, key=lambda g: [(g[0][k] is not None, _lowest(g[0][k])) for k in key])
    return [row for group in ordered for row in group]


def _lowest(value: Any) -> Any:
    return 0 if value is None else value


def _key(row: Record, key: list[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in key)
