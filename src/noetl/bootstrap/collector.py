"""Python's search for cycles, set for a process that serves for long and makes many small values.

Its defaults walk through everything that was ever imported whenever a few hundred values have
come together; rows of a loop make that many every millisecond, and hardly a cycle among them.
"""

import gc
from functools import cache
from typing import Final

YOUNG_MAX: Final = 50_000
"""More values than the rows in flight hold: most are freed before anybody looks through them."""

OLDER_MAX: Final = 10
"""As often the young ones, or those in between, are looked through before the next older ones."""


@cache
def settle() -> None:
    """What is there stays there as long as the process: nobody looks for cycles in it again."""
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, OLDER_MAX, OLDER_MAX)
