"""Frozen states; losing one costs time, never truth."""

from typing import Protocol

from noetl.domain.snapshots import Snapshot
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope

CANDIDATES_MAX = 16


class SnapshotStore(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    S1  a saved snapshot loads equal
    S2  `candidates` are those at or before the version asked for, newest first
    S3  saving the same version again replaces it
    S4  snapshots of other scopes and other executions are never returned and never removed
    S5  `prune` keeps the newest ones and removes the rest
    """

    async def save(self, snapshot: Snapshot) -> None: ...

    async def candidates(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        at_or_before: int,
        limit: int = CANDIDATES_MAX,
    ) -> list[Snapshot]: ...

    async def prune(self, scope: Scope, execution: ExecutionId, *, keep: int) -> int:
        """Returns how many were removed."""
        ...

    async def close(self) -> None: ...
