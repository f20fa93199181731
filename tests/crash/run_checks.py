"""What must hold of an execution whose process was killed again and again."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from noetl.bootstrap.platform import Platform
from noetl.domain.events import (
    CallDone,
    ChildStarted,
    CommandClaimed,
    CommandCompleted,
    FrameCommitted,
    FrameDispatched,
    StageOpened,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.log import StoredEvent
from noetl.domain.projection import QUERY_RECORDS_MAX, ProjectionQuery
from noetl.domain.read_models import PROJECTION_TYPES
from noetl.domain.surfaces import Row, live_checksum_bundle, parity
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.kernel.instant import Instant, from_datetime
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import Certificate, certify
from noetl.runtime.executions import Executions
from noetl.runtime.projector import Projector
from noetl.runtime.replay import ReplayRequest
from noetl.runtime.verify_log import verify_stream
from noetl.wire.codec import open_stored
from noetl.wire.columns import UNIQUE_FACTS
from tests.crash.counters import COUNTING, HONOURING, Counters

TERMINAL = {"playbook.completed", "playbook.failed", "execution.cancelled"}


@dataclass
class Record:
    """What the log says of one execution's work, by `execution/step/visit/iteration`."""

    ended: dict[str, Instant] = field(default_factory=dict)  # place -> when that was recorded
    called: dict[str, Instant] = field(default_factory=dict)  # cycle -> when that was recorded
    holders: Counter[str] = field(default_factory=Counter)
    frames: set[str] = field(default_factory=set)  # that were committed
    children: list[ExecutionId] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    facts: Counter[tuple[str, str]] = field(default_factory=Counter)


async def check_execution(platform: Platform, execution: ExecutionId, counters: Counters) -> Record:
    record = await read_record(platform, execution)
    assert (await verify_stream(platform.log, execution)).is_sound
    ends = sum(record.types[name] for name in TERMINAL)
    assert ends == 1, f"{ends} ends: {record.types}"
    assert set(record.facts.values()) <= {1}, record.facts.most_common(3)
    await check_effects(platform, execution, record, counters)
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    proof = await certify(platform.log, platform.snapshots, request)
    assert proof.proved
    await check_read_models(platform, execution, proof)
    for child in record.children:
        await check_execution(platform, child, counters)
    return record


async def check_effects(
    platform: Platform, execution: ExecutionId, record: Record, counters: Counters
) -> None:
    """Once where keys are honoured; elsewhere again only if the ledger says that it was."""
    executions = Executions(platform.log, platform.projections, platform.results)
    effects = await executions.effects(DEFAULT_SCOPE, execution)
    repeated = {entry.cycle for entry in effects if entry.state == "repeated"}
    for key in counters.of(execution, HONOURING):
        assert counters.honoured[key] == 1, f"{key} was honoured {counters.honoured[key]} times"
    for key, times in counters.of(execution, COUNTING).items():
        holders = record.holders[place_of(key)]
        assert times <= holders, f"{key} came {times} times from {holders} holders"
        assert times == 1 or key in repeated, f"{key} came {times} times, the ledger has it once"
    for arrival in counters.arrivals:
        recorded = record.called.get(arrival.key) or record.ended.get(place_of(arrival.key))
        if recorded is not None:
            assert arrival.at <= recorded, f"{arrival.key} ran again after it was recorded"


def check_trace(trace: Path, record: Record) -> None:
    """Code did not run again once its end was recorded."""
    for line in trace.read_text().splitlines():
        place, seconds = line.split()
        recorded = record.ended.get(place)
        at = from_datetime(datetime.fromtimestamp(float(seconds), UTC))
        assert recorded is None or at <= recorded, f"{place} ran again after it was recorded"


def place_of(cycle: str) -> str:
    return cycle.rsplit("/", 2)[0]


async def read_record(platform: Platform, execution: ExecutionId) -> Record:
    record, windows = Record(), dict[FrameId, tuple[str, int]]()
    steps: dict[str, str] = {}
    rows: list[StoredEvent] = []
    while page := await platform.log.read(execution, after_version=len(rows)):
        rows += page
    for stored in rows:
        recorded = open_stored(stored)
        event_type = recorded.envelope.event_type
        record.types[event_type] += 1
        if event_type in UNIQUE_FACTS:
            name = recorded.envelope.command_id or getattr(recorded.event, "loop_id", None)
            record.facts[event_type, str(name)] += 1
        _command(record, recorded, stored.ingest_time)
        _frame(record, recorded, stored.ingest_time, windows, steps)
    return record


def _command(record: Record, recorded: RecordedEvent, at: Instant) -> None:
    envelope, event = recorded.envelope, recorded.event
    place = (envelope.command_id or "").rpartition("/")[0]
    match event:
        case CommandClaimed():
            record.holders[place] += 1
        case CallDone(task=str(task), run=run):
            record.called[f"{place}/{task}/{run}"] = at
        case CommandCompleted():
            record.ended[place] = at
        case ChildStarted(child_execution_id=child):
            record.children.append(child)
        case _:
            pass


def _frame(
    record: Record,
    recorded: RecordedEvent,
    at: Instant,
    windows: dict[FrameId, tuple[str, int]],
    steps: dict[str, str],
) -> None:
    envelope, event = recorded.envelope, recorded.event
    stage, frame = envelope.stage_id or "", envelope.frame_id or FrameId("")
    match event:
        case StageOpened(step=step, visit=visit):
            steps[stage] = f"{envelope.execution_id}/{step}/{visit}"
        case FrameDispatched(cursor=cursor):
            windows[frame] = (steps[stage], cursor["first"])
            for row in range(cursor["first"], cursor["first"] + cursor["rows"]):
                record.holders[f"{steps[stage]}/{row}"] += 1
        case FrameCommitted(row_count=row_count):
            record.frames.add(frame)
            place, first = windows[frame]
            for row in range(first, first + row_count):
                record.ended[f"{place}/{row}"] = at
        case _:
            pass


async def check_read_models(platform: Platform, execution: ExecutionId, proof: Certificate) -> None:
    """Kept through all the kills, they prove the same state as the replayed log."""
    projector = Projector(platform.log, platform.projections)
    while await projector.advance():
        pass
    rows = {surface: await _rows(platform, execution, surface) for surface in SURFACES}
    found = parity(proof.projection_checksums, live_checksum_bundle(rows))
    assert found.matches, f"read models of {execution} differ: {found}"


async def _rows(platform: Platform, execution: ExecutionId, surface: Surface) -> list[Row]:
    rows: list[Row] = []
    after = ""
    while True:
        query = ProjectionQuery(
            scope=DEFAULT_SCOPE,
            projection_type=PROJECTION_TYPES[surface],
            execution_id=execution,
            after_id=after,
            limit=QUERY_RECORDS_MAX,
        )
        page = await platform.projections.query(query)
        rows += [record.state for record in page]
        if len(page) < QUERY_RECORDS_MAX:
            return rows
        after = page[-1].projection_id
