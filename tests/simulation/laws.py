"""What must hold of every run, whatever happened on the way."""

from collections import Counter

from noetl.domain.events import (
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StepEntered,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.fold import fold
from noetl.domain.execution.state import ExecutionState
from noetl.kernel.ids import ExecutionId
from noetl.wire.codec import open_stored
from tests.simulation.world import World

TERMINAL = {"playbook.completed", "playbook.failed", "execution.cancelled"}


async def events_of(world: World, execution: ExecutionId) -> list[RecordedEvent]:
    stored = await world.log.truth.read(execution, limit=100_000)
    return [open_stored(each) for each in stored]


async def check_state_in_memory(world: World) -> None:
    """What the coordinator holds is what the log says, whenever nothing is on its way."""
    for execution, running in world.coordinator.running.items():
        if running.is_recorded and running.head.version == await _version(world, execution):
            folded = fold(await events_of(world, execution))
            assert folded == running.state, f"the state of {execution} is not its log"


async def _version(world: World, execution: ExecutionId) -> int:
    return (await world.log.truth.head(execution)).version


async def check_run(world: World) -> None:
    assert not world.surprises, world.surprises
    assert not await world.open_executions(), await _stuck(world)
    executions = {stored.execution_id for stored in await world.log.truth.tail(limit=100_000)}
    acknowledged = set(world.acknowledged.reports)
    for execution in executions:
        events = await events_of(world, execution)
        state = check_history(events)
        assert state.execution.unmatched_events == 0
        acknowledged -= set(_ends(events))
        recorded = {
            (each.envelope.command_id, getattr(each.event, "task", None)) for each in events
        }
        told = {call for call in world.acknowledged.calls if call[0].startswith(f"{execution}/")}
        assert told <= recorded, f"calls got lost: {told - recorded}"
    assert not acknowledged, f"acknowledged and not recorded: {acknowledged}"
    check_memory(world)


def check_history(events: list[RecordedEvent]) -> ExecutionState:
    types = Counter(each.envelope.event_type for each in events)
    assert sum(types[name] for name in TERMINAL) == 1, types
    assert events[-1].envelope.event_type in {*TERMINAL, "object.changed"}, types
    issued = Counter(
        each.envelope.command_id for each in events if isinstance(each.event, CommandIssued)
    )
    entered = Counter(
        (each.event.step, each.event.visit)
        for each in events
        if isinstance(each.event, StepEntered)
    )
    assert max(issued.values()) == 1
    assert max(entered.values()) == 1
    state = fold(events)
    if state.execution.status == "COMPLETED":
        _check_rows(events)
    return state


def _check_rows(events: list[RecordedEvent]) -> None:
    """Every row of every loop was committed once."""
    windows: dict[str, int] = {}
    rows: Counter[tuple[str, int]] = Counter()
    total = 0
    for each in events:
        frame, stage = str(each.envelope.frame_id), str(each.envelope.stage_id)
        match each.event:
            case LoopStarted(collection_size=int(size)):
                total += size
            case FrameDispatched(cursor=cursor):
                windows[frame] = cursor["first"]
            case FrameCommitted(row_count=count):
                rows.update((stage, windows[frame] + row) for row in range(count))
            case ShardDone(shard_id=shard):
                rows[stage, int(shard)] += 1
            case _:
                pass
    assert len(rows) == total
    assert set(rows.values()) <= {1}


def _ends(events: list[RecordedEvent]) -> list[tuple[str, int]]:
    """Work that ended, with the claim or the attempt that ended it."""
    attempts: dict[str, int] = {}
    claims: dict[str, int] = {}
    ends: list[tuple[str, int]] = []
    for each in events:
        frame, command = str(each.envelope.frame_id), str(each.envelope.command_id)
        match each.event:
            case CommandClaimed(claim=claim):
                claims[command] = claim
            case CommandCompleted(claim=claim) | CommandFailed(claim=claim):
                assert claim == claims[command], f"{command} was ended by a fenced claim"
                ends.append((command, claims[command]))
            case FrameDispatched(attempt=attempt) | ShardEnqueued(attempt=int(attempt)):
                assert attempt > attempts.get(frame, 0), f"{frame} has two holders"
                attempts[frame] = attempt
            case FrameCommitted() | FrameFailed() | ShardDone() | ShardFailed():
                ends.append((frame, attempts[frame]))
            case _ if each.envelope.event_type == "frame.abandoned":
                ends.append((frame, attempts[frame]))
            case _:
                pass
    return ends


def check_memory(world: World) -> None:
    """An execution that is over leaves nothing behind."""
    coordinator = world.coordinator
    assert not coordinator.running
    assert not coordinator.neglected
    assert not coordinator.seats.all()
    assert not coordinator.seats.starving
    for kept in ("_inboxes", "_serving", "_loading", "_poked"):
        assert not getattr(coordinator, kept), f"{kept} is not empty"


async def _stuck(world: World) -> str:
    told = []
    for execution in await world.open_executions():
        state = fold(await events_of(world, execution))
        told.append(
            f"{execution} is {state.execution.status}: steps {state.open_steps}, commands"
            f" {[(row.command_id, row.status) for row in state.commands.values()]}, frames"
            f" {[(row.frame_id, row.status, row.worker_id) for row in state.frames.values()]},"
            f" tokens {state.tokens}"
        )
    return "; ".join(told)
