"""Read models, saved together with the position of the log that they reflect."""

from collections.abc import Sequence
from typing import Protocol

from noetl.domain.projection import Cursor, ProjectionQuery, ProjectionRecord
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope


class ProjectionStore(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    P1  a saved record loads equal, byte for byte in its canonical state
    P2  versions only rise: an older or equal version changes nothing and is counted as stale
    P3  records and the cursor of their consumer land together or not at all; a record that
        `check_record` refuses takes the others with it
    P4  a query returns records of its own scope only, all that match, in order of their ids
        by code point, rising or falling, page by page
    P5  a cursor never moves back, and one that belongs to another log is LogReplaced
    P6  everything saved survives the death of the process
    P7  removing an execution's records removes them and nothing else
    P8  a cleared store is as empty as a new one, so that it can be rebuilt from another log
    """

    async def save(self, records: Sequence[ProjectionRecord], cursor: Cursor | None = None) -> int:
        """Write the records and move the cursor; returns how many records were stale."""
        ...

    async def load(
        self, scope: Scope, projection_type: str, projection_id: str
    ) -> ProjectionRecord | None: ...

    async def query(self, query: ProjectionQuery) -> list[ProjectionRecord]: ...

    async def cursor(self, consumer: str) -> Cursor | None: ...

    async def remove(self, scope: Scope, execution: ExecutionId) -> int:
        """Returns how many records were removed."""
        ...

    async def clear(self) -> None:
        """Drop every record and every cursor."""
        ...

    async def close(self) -> None: ...
