"""New ids from this machine's clock. Nodes keep apart what two machines make at one moment."""

import time
from threading import Lock

from noetl.kernel.snowflake import SnowflakeSequence

_NANOS_PER_MILLI = 1_000_000


class SnowflakeIds:
    def __init__(self, node: int) -> None:
        self._sequence = SnowflakeSequence(node)
        self._lock = Lock()

    def new_id(self) -> str:
        with self._lock:
            return self._sequence.next(time.time_ns() // _NANOS_PER_MILLI)
