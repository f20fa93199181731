"""The replay certificate: proof that a state is the fold of its log, reached by three roads."""

import msgspec

from noetl.domain.log import AtEvent
from noetl.domain.surfaces import Parity, RowCollector, live_checksum_bundle, parity
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.ports.snapshot_store import SnapshotStore
from noetl.runtime.replay import Replay, ReplayRequest


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """`proved` holds when all roads end at the same checksums."""

    execution_id: ExecutionId
    stream_version: int
    event_count: int
    checksum: str
    projection_checksums: dict[str, str]
    fold_version: int
    canonical_form: str
    upcaster_registry_digest: str
    rows: Parity  # checksums recomputed from plain rows, as a read model would hold them
    snapshot_version: int | None  # where the second fold started; None: no usable snapshot
    snapshot_agrees: bool
    proved: bool


async def certify(log: EventLog, snapshots: SnapshotStore, request: ReplayRequest) -> Certificate:
    """From all events, from the newest snapshot, and from the rows without the fold's chain."""
    collector = RowCollector()
    whole = await Replay(log).state(request, collector)
    report = whole.report
    # The log may have grown meanwhile: all roads must end at the same event.
    pinned = request
    if report.last_event_id is not None:
        pinned = msgspec.structs.replace(request, cutoff=AtEvent(report.last_event_id))
    seeded = await Replay(log, snapshots).state(pinned)
    rows = parity(report.projection_checksums, live_checksum_bundle(collector.rows(whole.state)))
    agrees = seeded.report.checksum == report.checksum
    return Certificate(
        execution_id=request.execution_id,
        stream_version=report.stream_version,
        event_count=report.event_count,
        checksum=report.checksum,
        projection_checksums=report.projection_checksums,
        fold_version=report.fold_version,
        canonical_form=report.canonical_form,
        upcaster_registry_digest=report.upcaster_registry_digest,
        rows=rows,
        snapshot_version=seeded.report.snapshot.stream_version,
        snapshot_agrees=agrees,
        proved=rows.matches and agrees,
    )
