"""What the log says of a run of the PFT playbook, and what must hold of it on either engine."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from noetl.domain.events import FrameCommitted, FrameDispatched, FrameStarted
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.wire.codec import open_stored

PAGE_EVENTS = 1_000
SPARK = "spark/"
"""What the name of a worker begins with when it is a slot of Spark."""

EngineName = Literal["local", "spark"]


class FrameCounts(msgspec.Struct, kw_only=True):
    """Frames are those of cursors: they claim their rows in a transaction."""

    events: int
    command_events: int
    rows_by_stage: dict[str, list[int]]  # of the frames that had some, in the order of the log
    empty_frames: int  # claims that found nothing
    failed_rows: int
    claims: int  # transactions that claimed the rows of a frame, each counted once
    dispatches: int
    spark_dispatches: int

    @property
    def frames(self) -> int:
        return sum(map(len, self.rows_by_stage.values()))

    @property
    def rows(self) -> int:
        return sum(map(sum, self.rows_by_stage.values()))

    @property
    def rows_per_frame(self) -> float:
        """Claims that meet at the end of a table share what is left, so that few rows give less."""
        return self.rows / self.frames if self.frames else 0.0

    def faults(self, engine: EngineName, rows: int) -> dict[str, int]:
        """Nothing missing, nothing twice, one claim for each frame, and all by that engine."""
        by_engine = self.spark_dispatches
        if engine == "local":
            by_engine = self.dispatches - self.spark_dispatches
        found: dict[str, int] = {
            "rows of frames": self.rows - rows,
            "failed rows": self.failed_rows,
            "claims more than frames": self.claims - self.frames,
            "frames handed out again": self.dispatches - self.frames,
            f"frames not by {engine}": self.dispatches - by_engine,
        }
        return {name: value for name, value in found.items() if value}


async def counted(log: EventLog, execution: ExecutionId) -> FrameCounts:
    types: Counter[str] = Counter()
    holders: list[tuple[str, str]] = []
    claims: set[tuple[str, str]] = set()
    committed: list[tuple[str, str, FrameCommitted]] = []
    async for recorded in _events(log, execution):
        event, frame = recorded.event, str(recorded.envelope.frame_id)
        types[recorded.envelope.event_type] += 1
        if isinstance(event, FrameDispatched):
            holders.append((frame, event.worker_id))
        elif isinstance(event, FrameStarted) and event.transaction_id is not None:
            claims.add((frame, event.transaction_id))
        elif isinstance(event, FrameCommitted):
            committed.append((str(recorded.envelope.stage_id), frame, event))
    claimed = {frame for frame, _ in claims}
    rows_by_stage: dict[str, list[int]] = {}
    for stage, frame, event in committed:
        if frame in claimed:
            rows_by_stage.setdefault(stage, []).append(event.row_count)
    workers = [worker for frame, worker in holders if frame in claimed]
    return FrameCounts(
        events=types.total(),
        command_events=sum(types[name] for name in types if name.startswith("command.")),
        rows_by_stage=rows_by_stage,
        empty_frames=len([event for _, _, event in committed if event.row_count == 0]),
        failed_rows=sum(event.failed_rows for _, _, event in committed),
        claims=len(claims),
        dispatches=len(workers),
        spark_dispatches=len([worker for worker in workers if worker.startswith(SPARK)]),
    )


async def _events(log: EventLog, execution: ExecutionId) -> AsyncIterator[RecordedEvent]:
    version = 0
    while page := await log.read(execution, after_version=version, limit=PAGE_EVENTS):
        for stored in page:
            yield open_stored(stored, verify=False)
        version += len(page)
