"""The state of an execution as it was at any point: snapshot, events to the cutoff, fold."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.accumulator import Accumulator, RowSink, drop_row
from noetl.domain.execution.fold import FOLD_VERSION, evolve
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtEvent, Cutoff, StoredEvent
from noetl.domain.snapshots import FoldIdentity, Snapshot, why_unusable
from noetl.domain.surfaces import checksum_bundle, state_checksum
from noetl.kernel import canonical_json
from noetl.kernel.errors import ChainBroken, CutoffInvalid, ExecutionNotFound
from noetl.kernel.ids import EventId, ExecutionId, stream_id
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.snapshot_store import CANDIDATES_MAX, SnapshotStore
from noetl.wire.codec import open_stored
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import UpcasterRegistry

_STATE = msgspec.json.Decoder(ExecutionState)


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Whose execution, and the point to rebuild it at; no cutoff means now."""

    scope: Scope
    execution_id: ExecutionId
    cutoff: Cutoff | None = None


class RefusedSnapshot(msgspec.Struct, frozen=True):
    stream_version: int
    reason: str


class SnapshotUse(msgspec.Struct, frozen=True):
    """Which snapshot the fold started from, and which ones it could not trust."""

    stream_version: int | None = None
    checksum: str | None = None
    refused: tuple[RefusedSnapshot, ...] = ()


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """A state and everything needed to prove it elsewhere."""

    execution_id: ExecutionId
    tenant_id: str
    organization_id: str
    stream_version: int
    position: int
    last_event_id: EventId | None
    event_count: int
    events_folded: int
    checksum: str
    checksum_algorithm: str = "sha256"
    projection_checksums: dict[str, str]
    fold_version: int = FOLD_VERSION
    canonical_form: str = canonical_json.FORM
    upcaster_registry_digest: str
    snapshot: SnapshotUse = SnapshotUse()


class Replayed(msgspec.Struct, frozen=True):
    state: ExecutionState
    report: ReplayReport


class Replay:
    """Reads the log and never writes; `registry` is its own, so two replays may differ in it."""

    def __init__(
        self,
        log: EventLog,
        snapshots: SnapshotStore | None = None,
        registry: UpcasterRegistry = RELEASED,
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._registry = registry
        self._identity = FoldIdentity(fold_version=FOLD_VERSION, registry_digest=registry.digest)

    async def state(self, request: ReplayRequest, sink: RowSink = drop_row) -> Replayed:
        """Fold to the cutoff.

        A snapshot holds no finished rows, so whoever wants those (a `sink`) gets all events folded.
        """
        last_version = await self._last_version(request)
        use = SnapshotUse()
        start: Snapshot | None = None
        if sink is drop_row and self._snapshots is not None:
            start, use = await self._newest_usable(self._snapshots, request, last_version)
        accumulator = Accumulator(_STATE.decode(start.state) if start else ExecutionState(), sink)
        position = start.position if start else 0
        folded = 0
        first_version = start.stream_version if start else 0
        async for page in self._pages(request.execution_id, first_version, last_version):
            for stored in page:
                self._apply(accumulator, stored)
            position = page[-1].position
            folded += len(page)
        report = self._report(request, accumulator.state, position)
        return Replayed(
            accumulator.state, msgspec.structs.replace(report, events_folded=folded, snapshot=use)
        )

    async def stored(self, request: ReplayRequest) -> AsyncIterator[StoredEvent]:
        """The rows of the log up to the cutoff, as they lie there."""
        last_version = await self._last_version(request)
        async for page in self._pages(request.execution_id, 0, last_version):
            for row in page:
                yield row

    async def events(self, request: ReplayRequest) -> AsyncIterator[RecordedEvent]:
        """The events up to the cutoff, verified and lifted."""
        async for row in self.stored(request):
            yield open_stored(row, self._registry)

    def _apply(self, accumulator: Accumulator, stored: StoredEvent) -> None:
        recorded = open_stored(stored, self._registry)
        previous = accumulator.state.execution.last_event_id
        if recorded.envelope.prev_event_id != previous:
            reason = f"version {stored.stream_version} does not follow event {previous}"
            raise ChainBroken(recorded.envelope.stream_id, f"{reason}; verify the log")
        evolve(accumulator, recorded.envelope, recorded.event)

    async def take_snapshot(self, request: ReplayRequest, taken_at: Instant) -> Snapshot:
        """Freeze the state at the cutoff; whoever asked decides whether to save it."""
        replayed = await self.state(request)
        state, report = replayed.state, replayed.report
        return freeze(state, request.scope, report.position, taken_at, self._registry.digest)

    async def _last_version(self, request: ReplayRequest) -> int:
        """Another tenant's execution is not found, so nobody learns that it exists."""
        if await self._log.scope_of(request.execution_id) != request.scope:
            raise ExecutionNotFound(request.execution_id)
        if request.cutoff is None:
            return (await self._log.head(request.execution_id)).version
        version = await self._log.version_at(request.execution_id, request.cutoff)
        if version is None:
            raise CutoffInvalid(
                f"execution {request.execution_id} has no event at"
                f" {' '.join(str(part) for part in _plain(request.cutoff).values())};"
                f" noetl executions events {request.execution_id} lists them"
            )
        return version

    async def frozen(self, request: ReplayRequest, at_or_before: int) -> ExecutionState | None:
        """The newest state that was frozen by then and can be trusted."""
        if self._snapshots is None:
            return None
        start, _ = await self._newest_usable(self._snapshots, request, at_or_before)
        return None if start is None else _STATE.decode(start.state)

    async def fold_on(
        self, execution: ExecutionId, state: ExecutionState, to_version: int
    ) -> ExecutionState:
        """Fold what follows the state; it is changed in place and returned."""
        accumulator = Accumulator(state)
        async for page in self._pages(execution, state.stream_version, to_version):
            for stored in page:
                self._apply(accumulator, stored)
        return state

    async def _newest_usable(
        self, snapshots: SnapshotStore, request: ReplayRequest, last_version: int
    ) -> tuple[Snapshot | None, SnapshotUse]:
        """One by one: states can be large, and almost always the first one is good."""
        refused: list[RefusedSnapshot] = []
        while len(refused) < CANDIDATES_MAX and last_version > 0:
            found = await snapshots.candidates(
                request.scope, request.execution_id, at_or_before=last_version, limit=1
            )
            if not found:
                break
            snapshot = found[0]
            last_version = snapshot.stream_version - 1
            reason = await self._why_unusable(snapshot)
            if reason is None:
                return snapshot, SnapshotUse(
                    snapshot.stream_version, snapshot.checksum, tuple(refused)
                )
            refused.append(RefusedSnapshot(snapshot.stream_version, reason))
        return None, SnapshotUse(refused=tuple(refused))

    async def _why_unusable(self, snapshot: Snapshot) -> str | None:
        """A snapshot may outlive its log, so the log is asked whether it knows the event."""
        last = AtEvent(snapshot.last_event_id)
        if await self._log.version_at(snapshot.execution_id, last) != snapshot.stream_version:
            return "made of events that are not in this log"
        digest = await self._playbook_digest(snapshot.execution_id)
        reason = why_unusable(snapshot, self._identity, playbook_digest=digest)
        return _why_untrue(snapshot) if reason is None else reason

    async def _playbook_digest(self, execution: ExecutionId) -> str | None:
        for stored in await self._log.read(execution, limit=1):
            first = open_stored(stored, self._registry).event
            return first.playbook_digest if isinstance(first, PlaybookInitialized) else None
        return None

    async def _pages(
        self, execution: ExecutionId, after_version: int, last_version: int
    ) -> AsyncIterator[list[StoredEvent]]:
        while after_version < last_version:
            limit = min(PAGE_EVENTS_MAX, last_version - after_version)
            page = await self._log.read(execution, after_version=after_version, limit=limit)
            if not page:
                raise ChainBroken(stream_id(execution), f"nothing after version {after_version}")
            yield page
            after_version = page[-1].stream_version

    def _report(self, request: ReplayRequest, state: ExecutionState, position: int) -> ReplayReport:
        return ReplayReport(
            execution_id=request.execution_id,
            tenant_id=request.scope.tenant_id,
            organization_id=request.scope.organization_id,
            stream_version=state.stream_version,
            position=position,
            last_event_id=state.execution.last_event_id,
            event_count=state.execution.event_count,
            events_folded=0,
            checksum=state_checksum(state),
            projection_checksums=checksum_bundle(state),
            upcaster_registry_digest=self._registry.digest,
        )


def freeze(
    state: ExecutionState, scope: Scope, position: int, taken_at: Instant, registry_digest: str
) -> Snapshot:
    """The state as it is now, and everything that must match before it may be used."""
    row = state.execution
    if row.last_event_id is None:
        raise CutoffInvalid("there is no event before the cutoff, so there is nothing to freeze")
    encoded = canonical_json.encode_recorded(state)
    return Snapshot(
        scope=scope,
        execution_id=row.execution_id,
        stream_version=state.stream_version,
        position=position,
        last_event_id=row.last_event_id,
        fold_version=FOLD_VERSION,
        registry_digest=registry_digest,
        canonical_form=canonical_json.FORM,
        playbook_digest=row.playbook_digest,
        payload_chain=row.payload_refs.digest,
        state=encoded,
        checksum=canonical_json.sha256_hex(encoded),
        taken_at=taken_at,
    )


def _why_untrue(snapshot: Snapshot) -> str | None:
    """A checksum proves the bytes; this compares what they say with what the snapshot says."""
    try:
        state = _STATE.decode(snapshot.state)
    except msgspec.DecodeError as error:
        return f"its bytes are no state: {error}"
    row = state.execution
    said = (
        state.stream_version,
        row.last_event_id,
        row.execution_id,
        (row.tenant_id, row.organization_id),
        row.payload_refs.digest,
    )
    told = (
        snapshot.stream_version,
        snapshot.last_event_id,
        snapshot.execution_id,
        tuple(snapshot.scope),
        snapshot.payload_chain,
    )
    return None if said == told else "its state is not the one that it names"


def _plain(cutoff: Cutoff) -> Any:
    return msgspec.to_builtins(cutoff)
