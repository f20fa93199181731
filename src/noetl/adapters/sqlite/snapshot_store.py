"""SnapshotStore on SQLite."""

import sqlite3
from typing import Any

from noetl.adapters.sqlite.connection import SqliteFile
from noetl.domain.snapshots import Snapshot
from noetl.kernel.ids import ExecutionId, stream_id
from noetl.kernel.scope import Scope
from noetl.ports.snapshot_store import CANDIDATES_MAX

_AGGREGATE_TYPE = "replay_state"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS projection_snapshot (
    tenant_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    aggregate_type TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    execution_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    last_event_id TEXT NOT NULL,
    fold_version INTEGER NOT NULL,
    registry_digest TEXT NOT NULL,
    canonical_form TEXT NOT NULL,
    playbook_digest TEXT,
    payload_chain TEXT NOT NULL,
    state BLOB NOT NULL,
    checksum TEXT NOT NULL,
    taken_at TEXT NOT NULL,
    PRIMARY KEY (tenant_id, organization_id, aggregate_type, aggregate_id, version)
);
"""
_REPLACE = f"INSERT OR REPLACE INTO projection_snapshot VALUES ({', '.join('?' * 16)})"
_OF_ONE = """
tenant_id = ? AND organization_id = ? AND aggregate_type = ? AND aggregate_id = ?"""
_CANDIDATES = f"""
SELECT tenant_id, organization_id, execution_id, version, position, last_event_id, fold_version,
    registry_digest, canonical_form, playbook_digest, payload_chain, state, checksum, taken_at
FROM projection_snapshot WHERE {_OF_ONE} AND version <= ? ORDER BY version DESC LIMIT ?"""
_PRUNE = f"""
DELETE FROM projection_snapshot WHERE {_OF_ONE} AND version <= (
    SELECT version FROM projection_snapshot WHERE {_OF_ONE}
    ORDER BY version DESC LIMIT 1 OFFSET ?)"""


class SqliteSnapshotStore:
    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    @classmethod
    async def open(cls, file: SqliteFile) -> "SqliteSnapshotStore":
        await file.migrate(_SCHEMA)
        return cls(file)

    async def save(self, snapshot: Snapshot) -> None:
        def replace(connection: sqlite3.Connection) -> None:
            connection.execute(_REPLACE, _row(snapshot))

        await self._file.write(replace)

    async def candidates(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        at_or_before: int,
        limit: int = CANDIDATES_MAX,
    ) -> list[Snapshot]:
        arguments = (*_key(scope, execution), at_or_before, limit)
        return await self._file.read(
            lambda connection: [
                _snapshot(row) for row in connection.execute(_CANDIDATES, arguments)
            ]
        )

    async def prune(self, scope: Scope, execution: ExecutionId, *, keep: int) -> int:
        key = _key(scope, execution)
        return await self._file.write(
            lambda connection: connection.execute(_PRUNE, (*key, *key, keep)).rowcount
        )

    async def close(self) -> None:
        """Nothing to let go of: the file belongs to whoever opened it."""


def _key(scope: Scope, execution: ExecutionId) -> tuple[str, str, str, str]:
    return (*scope, _AGGREGATE_TYPE, f"{stream_id(execution)}/all")


def _row(snapshot: Snapshot) -> tuple[str | int | bytes | None, ...]:
    return (
        *_key(snapshot.scope, snapshot.execution_id),
        snapshot.stream_version,
        snapshot.execution_id,
        snapshot.position,
        snapshot.last_event_id,
        snapshot.fold_version,
        snapshot.registry_digest,
        snapshot.canonical_form,
        snapshot.playbook_digest,
        snapshot.payload_chain,
        snapshot.state,
        snapshot.checksum,
        snapshot.taken_at,
    )


def _snapshot(row: tuple[Any, ...]) -> Snapshot:
    return Snapshot(
        scope=Scope(row[0], row[1]),
        execution_id=row[2],
        stream_version=row[3],
        position=row[4],
        last_event_id=row[5],
        fold_version=row[6],
        registry_digest=row[7],
        canonical_form=row[8],
        playbook_digest=row[9],
        payload_chain=row[10],
        state=row[11],
        checksum=row[12],
        taken_at=row[13],
    )
