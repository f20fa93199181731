"""A certificate says yes only when every road ends at the same checksums."""

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import EMPTY_STREAM, Append
from noetl.domain.snapshots import Snapshot
from noetl.kernel import canonical_json
from noetl.kernel.ids import StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.certificate import certify
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.testing.histories import History, begin, command_cycle, execution_ids, source_of
from noetl.wire.codec import seal

(EXECUTION,) = execution_ids(1)
NOW = Instant("2026-01-01T00:00:00.000000Z")
REQUEST = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=EXECUTION)


@pytest.fixture
async def log() -> MemoryEventLog:
    log = MemoryEventLog(lambda: NOW)
    history = History(EXECUTION)
    drafts = [*begin(history), *list(command_cycle(history, StepName("load")))[:4]]
    sealed = seal(drafts, EMPTY_STREAM, source_of(EXECUTION))
    await log.append([Append(DEFAULT_SCOPE, EXECUTION, 0, sealed)])
    return log


async def saying(log: MemoryEventLog, state: bytes) -> MemorySnapshotStore:
    """A snapshot of the log whose state was exchanged, with the checksum to go with it."""
    taken = await Replay(log).take_snapshot(REQUEST, NOW)
    checksum = canonical_json.sha256_hex(state)
    store = MemorySnapshotStore()
    await store.save(msgspec.structs.replace(taken, state=state, checksum=checksum))
    return store


async def state_of(log: MemoryEventLog) -> ExecutionState:
    snapshot: Snapshot = await Replay(log).take_snapshot(REQUEST, NOW)
    return msgspec.json.decode(snapshot.state, type=ExecutionState)


async def test_a_sound_log_is_proved(log: MemoryEventLog) -> None:
    store = MemorySnapshotStore()
    await store.save(await Replay(log).take_snapshot(REQUEST, NOW))
    certificate = await certify(log, store, REQUEST)
    assert certificate.proved
    assert certificate.snapshot_version == 5


async def test_a_snapshot_that_tells_another_story_is_not_proved(log: MemoryEventLog) -> None:
    state = await state_of(log)
    state.execution.status = "COMPLETED"
    store = await saying(log, canonical_json.encode_recorded(state))

    certificate = await certify(log, store, REQUEST)

    assert not certificate.snapshot_agrees
    assert not certificate.proved


@pytest.mark.parametrize("state", [b"{}", b'{"stream_version":"x"}', b"not json"])
async def test_a_state_that_is_not_the_one_named_is_refused(
    log: MemoryEventLog, state: bytes
) -> None:
    store = await saying(log, state)

    replayed = await Replay(log, store).state(REQUEST)

    assert replayed.report.event_count == 5
    assert len(replayed.report.snapshot.refused) == 1
    assert "state" in replayed.report.snapshot.refused[0].reason


async def test_a_snapshot_of_events_that_are_not_in_the_log_is_refused(
    log: MemoryEventLog,
) -> None:
    taken = await Replay(log).take_snapshot(REQUEST, NOW)
    store = MemorySnapshotStore()
    await store.save(msgspec.structs.replace(taken, last_event_id="1"))

    report = (await Replay(log, store).state(REQUEST)).report

    assert report.snapshot.refused[0].reason == "made of events that are not in this log"


async def test_a_snapshot_of_another_playbook_is_refused(log: MemoryEventLog) -> None:
    taken = await Replay(log).take_snapshot(REQUEST, NOW)
    store = MemorySnapshotStore()
    await store.save(msgspec.structs.replace(taken, playbook_digest="0" * 64))

    report = (await Replay(log, store).state(REQUEST)).report

    assert report.snapshot.refused[0].reason == "made of another playbook"
