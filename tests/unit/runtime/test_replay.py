"""Replay rebuilds a state as it was at any event, position or time, or says why it cannot."""

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.execution.fold import FOLD_VERSION, fold
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import AtEvent, AtPosition, AtTime, Cutoff
from noetl.domain.surfaces import checksum_bundle, live_checksum_bundle, open_rows, plain
from noetl.domain.surfaces import state_checksum as checksum_of
from noetl.kernel.errors import (
    ChainBroken,
    CutoffInvalid,
    EventCorrupt,
    EventUnreadable,
    ExecutionNotFound,
)
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.runtime.replay import Replay, Replayed, ReplayRequest
from noetl.testing.given import recorded
from noetl.testing.histories import History, begin, command_cycle
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import Upcaster, UpcasterRegistry
from tests.unit.runtime.written import (
    FIRST,
    SECOND,
    STEP,
    THIRD,
    DamagedLog,
    Ticking,
    at_second,
    whole_run,
    write,
)

RUN = whole_run()
SIZE = 5


def request(cutoff: Cutoff | None = None, execution: ExecutionId = FIRST) -> ReplayRequest:
    return ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution, cutoff=cutoff)


@pytest.fixture
async def log() -> MemoryEventLog:
    """Five events of the first execution at a time, two of the second in between."""
    log = MemoryEventLog(Ticking())
    other = whole_run(SECOND)
    for turn in range(len(RUN) // SIZE + 1):
        await write(log, FIRST, RUN[turn * SIZE : (turn + 1) * SIZE], SIZE)
        await write(log, SECOND, other[turn * 2 : (turn + 1) * 2], 2)
    return log


async def replayed(log: MemoryEventLog, cutoff: Cutoff | None = None) -> Replayed:
    return await Replay(log).state(request(cutoff))


def expected(version: int) -> ExecutionState:
    return fold(recorded(RUN, FIRST)[:version])


async def test_without_a_cutoff_the_whole_stream_is_folded(log: MemoryEventLog) -> None:
    state, report = msgspec.structs.astuple(await replayed(log))

    assert state == expected(len(RUN))
    assert state.execution.status == "COMPLETED"
    assert (report.execution_id, report.tenant_id, report.organization_id) == (
        FIRST, "default", "default",
    )  # fmt: skip
    assert report.stream_version == report.event_count == report.events_folded == len(RUN)
    assert report.position == (await log.read(FIRST))[-1].position
    assert report.last_event_id == RUN[-1].event_id
    assert report.projection_checksums == checksum_bundle(state)
    assert report.checksum == checksum_of(state)
    assert report.checksum_algorithm == "sha256"
    assert report.fold_version == FOLD_VERSION
    assert report.canonical_form == "c1"
    assert report.upcaster_registry_digest == RELEASED.digest


async def test_every_event_is_a_point_to_go_back_to(log: MemoryEventLog) -> None:
    for version, draft in enumerate(RUN, start=1):
        was = await replayed(log, AtEvent(draft.event_id))
        assert was.state == expected(version)
        assert was.report.last_event_id == draft.event_id
        assert was.report.stream_version == was.report.events_folded == version


async def test_every_position_is_a_point_to_go_back_to(log: MemoryEventLog) -> None:
    mine = [row.position for row in await log.read(FIRST)]
    for position in range(len(await log.tail()) + 2):
        was = await replayed(log, AtPosition(position))
        version = sum(each <= position for each in mine)
        assert was.state == expected(version)
        assert was.report.position == max((each for each in mine if each <= position), default=0)


async def test_every_second_is_a_point_to_go_back_to(log: MemoryEventLog) -> None:
    rows = await log.read(FIRST)
    for second in range(10):
        was = await replayed(log, AtTime(at_second(second)))
        version = sum(row.ingest_time <= at_second(second) for row in rows)
        assert was.state == expected(version)
    assert was.state == expected(len(RUN))


@pytest.mark.parametrize("cutoff", [AtPosition(0), AtTime(at_second(0))])
async def test_before_the_first_event_there_is_nothing(log: MemoryEventLog, cutoff: Cutoff) -> None:
    was = await replayed(log, cutoff)
    assert was.state == ExecutionState()
    assert was.report.last_event_id is None
    assert (was.report.stream_version, was.report.position, was.report.events_folded) == (0, 0, 0)
    assert was.report.projection_checksums == live_checksum_bundle({})


@pytest.mark.parametrize("event_id", ["1", "nonsense", whole_run(SECOND)[0].event_id + "9"])
async def test_an_event_that_is_not_in_the_stream_is_no_cutoff(
    log: MemoryEventLog, event_id: str
) -> None:
    with pytest.raises(CutoffInvalid, match=event_id):
        await replayed(log, AtEvent(EventId(event_id)))


@pytest.mark.parametrize("cutoff", [None, AtPosition(3), AtEvent(RUN[0].event_id)])
@pytest.mark.parametrize("scope", [Scope("acme", "default"), Scope("default", "research")])
async def test_the_execution_of_another_is_not_found(
    log: MemoryEventLog, scope: Scope, cutoff: Cutoff | None
) -> None:
    foreign = ReplayRequest(scope=scope, execution_id=FIRST, cutoff=cutoff)
    with pytest.raises(ExecutionNotFound) as refused:
        await Replay(log).state(foreign)
    unknown = ReplayRequest(scope=scope, execution_id=THIRD, cutoff=cutoff)
    with pytest.raises(ExecutionNotFound) as missing:
        await Replay(log).state(unknown)
    assert str(refused.value).replace(FIRST, THIRD) == str(missing.value)


async def test_a_stream_of_many_pages_is_folded_to_its_end() -> None:
    log, history = MemoryEventLog(Ticking()), History(FIRST)
    drafts = list(begin(history))
    for visit in range(1, 301):
        drafts += command_cycle(history, STEP, visit)
    await write(log, FIRST, drafts, 500)

    whole = await Replay(log).state(request())
    part = await Replay(log).state(request(AtEvent(drafts[1_999].event_id)))

    assert whole.report.events_folded == 2_101
    assert part.report.stream_version == part.report.events_folded == 2_000


async def test_rows_that_finish_go_to_the_sink(log: MemoryEventLog) -> None:
    finished: dict[Surface, list[dict[str, object]]] = {surface: [] for surface in SURFACES}
    was = await Replay(log).state(
        request(), sink=lambda surface, row: finished[surface].append(plain(row))
    )
    rows = {each: [*open_rows(was.state, each), *finished[each]] for each in SURFACES}
    assert [len(rows[surface]) for surface in SURFACES] == [1, 1, 2, 1, 0, 1]
    assert live_checksum_bundle(rows) == was.report.projection_checksums


async def test_events_come_one_by_one_up_to_the_cutoff(log: MemoryEventLog) -> None:
    at_seven = request(AtEvent(RUN[6].event_id))
    events = [each async for each in Replay(log).events(at_seven)]
    rows = [each async for each in Replay(log).stored(at_seven)]
    assert [each.event for each in events] == [draft.event for draft in RUN[:7]]
    assert rows == (await log.read(FIRST))[:7]


async def test_a_replay_uses_the_registry_it_was_given(log: MemoryEventLog) -> None:
    own = UpcasterRegistry([Upcaster("noetl.step.enter", 1, 2, lambda body: body)])
    was = await Replay(log, registry=own).state(request())
    assert was.report.upcaster_registry_digest == own.digest
    assert was.report.checksum == (await replayed(log)).report.checksum


@pytest.mark.parametrize("version", [1, 2, 7, len(RUN)])
async def test_a_hole_in_the_stream_is_never_passed_over(version: int) -> None:
    log = DamagedLog()
    await write(log, FIRST, RUN, 500)
    log.replaced = {version: None}
    with pytest.raises(ChainBroken):
        await Replay(log).state(request())


async def test_events_in_the_wrong_order_are_noticed() -> None:
    log = DamagedLog()
    await write(log, FIRST, RUN, 500)
    rows = await log.read(FIRST)
    log.replaced = {3: rows[3], 4: rows[2]}
    with pytest.raises(ChainBroken, match="verify the log"):
        await Replay(log).state(request())


async def test_an_event_in_the_place_of_another_is_noticed() -> None:
    log = DamagedLog()
    await write(log, FIRST, RUN, 500)
    rows = await log.read(FIRST)
    in_fours_place = msgspec.structs.replace(rows[3], stream_version=3)
    log.replaced = {3: in_fours_place}
    with pytest.raises(EventUnreadable, match="those of another event"):
        await Replay(log).state(request())


async def test_damaged_bytes_are_never_folded() -> None:
    log = DamagedLog()
    await write(log, FIRST, RUN, 500)
    row = (await log.read(FIRST))[3]
    log.replaced = {4: msgspec.structs.replace(row, canonical=row.canonical + b" ")}
    with pytest.raises(EventCorrupt):
        await Replay(log).state(request())
    untouched = await Replay(log).state(request(AtEvent(RUN[2].event_id)))
    assert untouched.state == expected(3)
