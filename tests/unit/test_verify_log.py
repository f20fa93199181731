"""Whatever happens to a log that should not, the verification finds it and says what it is."""

from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.events.envelope import Draft
from noetl.domain.log import EMPTY_STREAM, Append, StoredEvent, StreamHead
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX
from noetl.runtime.verify_log import FAULTS_MAX, Fault, verify_log, verify_stream
from noetl.testing.histories import (
    History,
    command_cycle,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal
from tests.unit.planted_log import (
    EVENTS,
    FIRST,
    NOW,
    SECOND,
    STEP,
    PlantedLog,
    Rows,
    fields,
    heads_of,
    on,
    planted,
    replacing,
    rewriting,
    two_streams,
    with_bytes,
)

TOUCHED = 3  # the version in FIRST that the tests tamper with


def flip_a_byte(row: StoredEvent) -> StoredEvent:
    flipped = row.canonical.replace(b'"load"', b'"lead"')
    return msgspec.structs.replace(row, canonical=flipped)


def swap_positions(rows: Rows) -> Rows:
    places = {TOUCHED: 2 * TOUCHED + 1, TOUCHED + 1: 2 * TOUCHED - 1}
    for version, position in places.items():
        rows = on(version, replacing(position=position))(rows)
    return rows


def write_twice(rows: Rows) -> Rows:
    (again,) = (row for row in rows if (row.execution_id, row.stream_version) == (FIRST, TOUCHED))
    return [*rows, msgspec.structs.replace(again, position=len(rows) + 1)]


TAMPERED: dict[str, tuple[Callable[[Rows], Rows], set[str]]] = {
    "a byte is not what it was": (on(2, flip_a_byte), {"checksum"}),
    "a checksum is not what it was": (on(TOUCHED, replacing(checksum="0" * 64)), {"checksum"}),
    "the bytes are no event": (on(TOUCHED, lambda row: with_bytes(row, b"{}")), {"unreadable"}),
    "the bytes are no text": (on(TOUCHED, lambda row: with_bytes(row, b"\xff")), {"unreadable"}),
    "the bytes nest without end": (
        on(TOUCHED, lambda row: with_bytes(row, b'{"a":' * 100_000)),
        {"unreadable"},
    ),
    "the annotations are no JSON": (on(TOUCHED, replacing(annotations=b"\xff")), {"unreadable"}),
    "the event is of another stream": (
        on(TOUCHED, rewriting(execution_id=SECOND)),
        {"unreadable"},
    ),
    "the event is of a version to come": (
        on(TOUCHED, rewriting(schema_version=99)),
        {"unreadable"},
    ),
    "the first event is gone": (on(1, lambda _: None), {"version"}),
    "an event in the middle is gone": (on(TOUCHED, lambda _: None), {"version"}),
    "an event was written twice": (write_twice, {"version"}),
    "the first event follows another": (on(1, rewriting(prev_event_id="1")), {"root"}),
    "a later event follows none": (on(TOUCHED, rewriting(prev_event_id=None)), {"root"}),
    "an event follows a stranger": (on(TOUCHED, rewriting(prev_event_id="1")), {"link"}),
    "an event has another id": (on(TOUCHED, rewriting(event_id="1")), {"link"}),
    "an event has another owner": (on(TOUCHED, rewriting(tenant_id="acme")), {"scope"}),
    "an event came in earlier than the one before": (
        on(TOUCHED, replacing(ingest_time=Instant("2025-01-01T00:00:00.000000Z"))),
        {"ingest_time"},
    ),
}


def kinds(faults: Sequence[Fault]) -> set[str]:
    return {fault.kind for fault in faults}


async def test_a_sound_log_has_no_fault() -> None:
    rows = two_streams()
    log = PlantedLog(rows, heads_of(rows))

    stream, whole = await verify_stream(log, FIRST), await verify_log(log)

    assert (stream.is_sound, stream.faults) == (True, ())
    assert (stream.events, stream.version) == (EVENTS, EVENTS)
    assert stream.last_event_id == heads_of(rows)[FIRST].last_event_id
    assert (whole.is_sound, whole.faults, whole.identity) == (True, (), "planted")
    assert (whole.streams, whole.events, whole.last_position) == (2, len(rows), len(rows))


@pytest.mark.parametrize("name", TAMPERED)
async def test_it_is_found_in_its_stream(name: str) -> None:
    tamper, expected = TAMPERED[name]
    rows = two_streams()

    report = await verify_stream(PlantedLog(tamper(rows), heads_of(rows)), FIRST)

    assert kinds(report.faults) == expected
    assert not report.is_sound
    assert {fault.execution_id for fault in report.faults} == {FIRST}


@pytest.mark.parametrize("name", TAMPERED)
@pytest.mark.parametrize("stream_ends_max", [1, 100], ids=["forgetful", "remembering"])
async def test_it_is_found_in_the_whole_log(name: str, stream_ends_max: int) -> None:
    tamper, expected = TAMPERED[name]
    rows = two_streams()
    log = PlantedLog(tamper(rows), heads_of(rows))

    report = await verify_log(log, stream_ends_max=stream_ends_max)

    assert kinds(report.faults) == expected
    assert {fault.execution_id for fault in report.faults} == {FIRST}


@pytest.mark.parametrize(("stream_ends_max", "expected"), [(1, "position"), (100, "version")])
async def test_events_in_the_wrong_order_are_found(stream_ends_max: int, expected: str) -> None:
    rows = two_streams()
    log = PlantedLog(swap_positions(rows), heads_of(rows))

    stream, whole = (
        await verify_stream(log, FIRST),
        await verify_log(log, stream_ends_max=stream_ends_max),
    )

    assert kinds(stream.faults) == {"position"}
    assert expected in kinds(whole.faults)


async def test_a_tail_that_does_not_rise_is_found_and_left() -> None:
    class Unsorted(PlantedLog):
        async def tail(
            self, *, after_position: int = 0, limit: int = PAGE_EVENTS_MAX
        ) -> list[StoredEvent]:
            return two_streams()[::-1]

    rows = two_streams()

    report = await verify_log(Unsorted(rows, heads_of(rows)))

    assert "position" in kinds(report.faults)


async def test_a_fault_says_where_and_what() -> None:
    rows = two_streams()
    tampered = on(TOUCHED, rewriting(prev_event_id="1"))(rows)

    (fault,) = (await verify_stream(PlantedLog(tampered, heads_of(rows)), FIRST)).faults

    before = fields(rows[2 * TOUCHED - 4])["event_id"]
    assert (fault.stream_version, fault.position) == (TOUCHED, 2 * TOUCHED - 1)
    assert fault.message == f"it follows event 1, before it is event {before}"


async def test_a_stream_that_lost_its_end_is_found() -> None:
    rows = two_streams()
    log = PlantedLog(on(EVENTS, lambda _: None)(rows), heads_of(rows))

    report = await verify_stream(log, FIRST)

    assert kinds(report.faults) == {"head"}
    assert report.faults[0].message == "it ends at version 6, the log says at 7"


async def test_a_head_that_names_another_event_is_found() -> None:
    rows = two_streams()
    log = PlantedLog(rows, heads_of(rows) | {FIRST: StreamHead(EVENTS, EventId("1"))})

    assert kinds((await verify_stream(log, FIRST)).faults) == {"head"}


async def test_a_stream_that_the_log_gives_to_another_owner_is_found() -> None:
    rows = two_streams()
    log = PlantedLog(rows, heads_of(rows), Scope("acme", "research"))

    report = await verify_stream(log, FIRST)

    assert kinds(report.faults) == {"scope"}
    assert "default/default, the log says to acme/research" in report.faults[0].message


async def test_a_stream_that_is_not_there_is_sound_and_empty() -> None:
    report = await verify_stream(PlantedLog([], {}), FIRST)

    assert (report.is_sound, report.events, report.last_event_id) == (True, 0, None)
    assert (await verify_log(PlantedLog([], {}))).is_sound


async def test_many_faults_are_counted_and_the_first_described() -> None:
    rows = planted(FIRST, list(loop_of_frames(History(FIRST), STEP, frames=20)))
    spoilt = [
        msgspec.structs.replace(row, position=place, checksum="0" * 64)
        for place, row in enumerate(rows, start=1)
    ]
    log = PlantedLog(spoilt, heads_of(rows))

    stream, whole = await verify_stream(log, FIRST), await verify_log(log)

    assert stream.fault_count == whole.fault_count == len(rows) > FAULTS_MAX
    assert len(stream.faults) == len(whole.faults) == FAULTS_MAX
    assert [fault.stream_version for fault in stream.faults] == list(range(1, FAULTS_MAX + 1))


async def memory_log(drafts: Sequence[Draft]) -> MemoryEventLog:
    log = MemoryEventLog(lambda: NOW)
    for start in range(0, len(drafts), 500):
        head = await log.head(FIRST)
        sealed = seal(drafts[start : start + 500], head, source_of(FIRST))
        await log.append([Append(DEFAULT_SCOPE, FIRST, head.version, sealed)])
    return log


async def test_pages_join_without_a_gap() -> None:
    drafts = list(loop_of_frames(History(FIRST), STEP, frames=800))
    assert len(drafts) > 2 * PAGE_EVENTS_MAX
    log = await memory_log(drafts)

    stream, whole = await verify_stream(log, FIRST), await verify_log(log)

    assert (stream.fault_count, stream.events) == (0, len(drafts))
    assert (whole.fault_count, whole.events, whole.streams) == (0, len(drafts), 1)


async def test_events_that_arrive_meanwhile_do_no_harm() -> None:
    class Growing(MemoryEventLog):
        async def scope_of(self, execution: ExecutionId) -> Scope | None:
            head = await self.head(execution)
            sealed = seal(drafts[3:], head, source_of(execution))
            await self.append([Append(DEFAULT_SCOPE, execution, head.version, sealed)])
            return await super().scope_of(execution)

    drafts = list(command_cycle(History(FIRST), STEP))
    log = Growing(lambda: NOW)
    sealed = seal(drafts[:3], EMPTY_STREAM, source_of(FIRST))
    await log.append([Append(DEFAULT_SCOPE, FIRST, 0, sealed)])

    report = await verify_stream(log, FIRST)

    assert (report.faults, report.events) == ((), EVENTS)


@given(at=st.integers(0, 10_000), value=st.integers(0, 255))
async def test_any_changed_byte_is_found(at: int, value: int) -> None:
    rows = two_streams()
    canonical = bytearray(rows[0].canonical)
    canonical[at % len(canonical)] ^= value
    changed = [msgspec.structs.replace(rows[0], canonical=bytes(canonical)), *rows[1:]]

    report = await verify_log(PlantedLog(changed, heads_of(rows)))

    assert report.is_sound == (value == 0)


@given(at=st.integers(0, 10_000), value=st.integers(1, 255))
async def test_no_bytes_end_the_verification_before_its_time(at: int, value: int) -> None:
    """Bytes that hash to their checksum and are still no event of ours."""
    rows = two_streams()
    canonical = bytearray(rows[0].canonical)
    canonical[at % len(canonical)] ^= value
    changed = [with_bytes(rows[0], bytes(canonical)), *rows[1:]]

    report = await verify_log(PlantedLog(changed, heads_of(rows)))

    assert report.events == len(rows)
