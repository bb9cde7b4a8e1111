"""What a record does to the state of its dataset, as the column `op` holds it.

Source: specification, "Operation Types"; RFC-015.
"""

from typing import Final

APPEND: Final = 0
RETRACT: Final = 1
CORRECT_FROM: Final = 2
CORRECT_TO: Final = 3
