"""SnapshotStore in a dict: the reference adapter. Forgets when it dies."""

from noetl.domain.snapshots import Snapshot
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.snapshot_store import CANDIDATES_MAX


class MemorySnapshotStore:
    def __init__(self) -> None:
        self._by_version: dict[tuple[Scope, ExecutionId], dict[int, Snapshot]] = {}

    async def save(self, snapshot: Snapshot) -> None:
        key = (snapshot.scope, snapshot.execution_id)
        self._by_version.setdefault(key, {})[snapshot.stream_version] = snapshot

    async def candidates(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        at_or_before: int,
        limit: int = CANDIDATES_MAX,
    ) -> list[Snapshot]:
        snapshots = self._by_version.get((scope, execution), {})
        versions = sorted((each for each in snapshots if each <= at_or_before), reverse=True)
        return [snapshots[version] for version in versions[:limit]]

    async def prune(self, scope: Scope, execution: ExecutionId, *, keep: int) -> int:
        snapshots = self._by_version.get((scope, execution), {})
        removed = sorted(snapshots, reverse=True)[keep:]
        for version in removed:
            del snapshots[version]
        return len(removed)

    async def close(self) -> None:
        """Nothing to let go of."""
