"""The same table of generated values, with nulls and edges, for Spark and the engines beside it."""

from __future__ import annotations

import random
import string
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

SEED = 7
_EPOCH = date(1970, 1, 1)
_TEXTS = ("", " ", "a", "ab", "a b", "Ünïcode ß", "x" * 40, "%_", "it's", "0", "-1", "true", "é")


def rows(count: int) -> list[dict[str, Any]]:
    """`count` rows: the first ones hold the edges of each type, others are drawn at random."""
    drawn = random.Random(SEED)
    edges: dict[str, list[Any]] = {
        "i": [0, 1, -1, 2**31 - 1, 1 - 2**31, None],
        "l": [0, 1, -1, 2**53, -(2**53), 2**40, None],
        "d": [0.0, 1.0, -1.0, 0.5, -2.5, 1e300, 1e-300, None],
        "s": [*_TEXTS, None],
        "b": [True, False, None],
        "dt": [_EPOCH, date(1969, 12, 31), date(2024, 2, 29), date(1900, 3, 1), None],
        "ts": [0, -1, -1500, 1_700_000_000_123, 951_782_399_999, -2_000_000_000_000, None],
        "dec": [Decimal("0.00"), Decimal("0.01"), Decimal("-99999999.99"), None],
    }
    more: dict[str, Any] = {
        "i": lambda: drawn.randint(1 - 2**31, 2**31 - 1) >> drawn.randint(0, 31),
        "l": lambda: drawn.randint(-(2**53), 2**53) >> drawn.randint(0, 53),
        "d": lambda: drawn.uniform(-1, 1) * 10 ** drawn.randint(-9, 9),
        "s": lambda: "".join(drawn.choices(string.ascii_letters + " .,'-", k=drawn.randint(0, 9))),
        "b": lambda: drawn.random() < 0.5,
        "dt": lambda: _EPOCH + timedelta(days=drawn.randint(-20_000, 40_000)),
        "ts": lambda: drawn.randint(-(10**12), 2 * 10**12),
        "dec": lambda: Decimal(drawn.randint(-(10**8), 10**8)).scaleb(-2),
    }
    found = []
    for number in range(count):
        row: dict[str, Any] = {"id": number}
        for name, known in edges.items():
            if number < 8 * len(known):
                row[name] = known[number % len(known)]
            else:
                row[name] = None if drawn.random() < 0.1 else more[name]()
        found.append(row)
    return found
