"""Every event in every status of the thing it is about: the whole behaviour of the fold as tables.

A cell is the status afterwards. `=` means that the event is counted as unmatched and changes
nothing of the row; `!` marks a row that is finished and has left the state.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from noetl.domain.events import (
    CallFailed,
    CallPartial,
    CommandCancelled,
    CommandReleased,
    Event,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    FaninCompleted,
    FrameFailed,
    LoopDone,
    PlaybookCompleted,
    PlaybookFailed,
    StageClosed,
    StageEngine,
    StepEntered,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Result
from noetl.domain.execution import business_objects, chunks, steps
from noetl.domain.execution.fold import FOLDS
from noetl.domain.execution.rows import Surface
from noetl.testing.given import Placed, Story, at, given
from tests.unit.domain import happenings as on

Happening = Event | Placed


class Machine(NamedTuple):
    surface: Surface
    row_id: str
    ways: dict[str, list[Happening]]  # status -> how to get there
    events: dict[str, Happening]
    table: str


EXECUTION = Machine(
    "execution",
    "",
    {
        "PENDING": [StepEntered(step=on.STEP)],
        "RUNNING": [on.STARTED],
        "PAUSED": [on.STARTED, ExecutionPaused()],
        "COMPLETED": [on.STARTED, PlaybookCompleted()],
        "FAILED": [on.STARTED, PlaybookFailed(error=on.FAILURE)],
        "CANCELLED": [StepEntered(step=on.STEP), ExecutionCancelled()],
    },
    {
        "initialized": on.STARTED,
        "paused": ExecutionPaused(),
        "resumed": ExecutionResumed(),
        "completed": PlaybookCompleted(),
        "failed": PlaybookFailed(error=on.FAILURE),
        "cancelled": ExecutionCancelled(),
        "retried": ExecutionRetried(step=on.STEP, visit=1),
    },
    """
    event         PENDING    RUNNING    PAUSED     COMPLETED  FAILED     CANCELLED
    initialized   RUNNING    =          =          =          =          =
    paused        PAUSED     PAUSED     PAUSED     =          =          =
    resumed       RUNNING    RUNNING    RUNNING    =          =          =
    completed     COMPLETED  COMPLETED  COMPLETED  =          =          =
    failed        FAILED     FAILED     FAILED     =          =          =
    cancelled     CANCELLED  CANCELLED  CANCELLED  =          =          =
    retried       =          =          =          RUNNING    RUNNING    RUNNING
    """,
)

COMMANDS = Machine(
    "commands",
    on.COMMAND,
    {
        "absent": [on.STARTED],
        "gone": [on.issued(), on.completed()],
        "PENDING": [on.issued()],
        "CLAIMED": [on.issued(), on.claimed(claim=2)],
        "RUNNING": [on.issued(), on.claimed(claim=2), on.started(claim=2)],
    },
    {
        "issued": on.issued(),
        "claimed": on.claimed(on.BERT, claim=3),
        "claimed-stale": on.claimed(on.BERT, claim=2),
        "started": on.started(claim=2),
        "started-fenced": on.started(claim=1),
        "heartbeat": on.heartbeat(claim=2),
        "heartbeat-fenced": on.heartbeat(claim=1),
        "released": at(CommandReleased(worker_id=on.ANNA, claim=2), command_id=on.COMMAND),
        "released-fenced": at(CommandReleased(worker_id=on.ANNA, claim=1), command_id=on.COMMAND),
        "call": on.called(),
        "call-failed": at(CallFailed(step=on.STEP, error=on.FAILURE), command_id=on.COMMAND),
        "call-partial": at(
            CallPartial(step=on.STEP, chunk_index=0, has_more=True, result=Result(status="ok")),
            command_id=on.COMMAND,
        ),
        "completed": on.completed(claim=2),
        "failed": on.failed(claim=2),
        "cancelled": at(CommandCancelled(), command_id=on.COMMAND),
    },
    """
    event             absent   gone     PENDING     CLAIMED     RUNNING
    issued            PENDING  PENDING  =           =           =
    claimed           =        =        CLAIMED     CLAIMED     CLAIMED
    claimed-stale     =        =        CLAIMED     =           =
    started           =        =        =           RUNNING     RUNNING
    started-fenced    =        =        =           =           =
    heartbeat         =        =        =           CLAIMED     RUNNING
    heartbeat-fenced  =        =        =           =           =
    released          =        =        =           PENDING     PENDING
    released-fenced   =        =        =           =           =
    call              =        =        PENDING     CLAIMED     RUNNING
    call-failed       =        =        PENDING     CLAIMED     RUNNING
    call-partial      =        =        PENDING     CLAIMED     RUNNING
    completed         =        =        COMPLETED!  COMPLETED!  COMPLETED!
    failed            =        =        FAILED!     FAILED!     FAILED!
    cancelled         =        =        CANCELLED!  CANCELLED!  CANCELLED!
    """,
)

FRAMES = Machine(
    "frames",
    on.FRAME,
    {
        "absent": [on.stage_opened()],
        "gone": [on.stage_opened(), on.dispatched(), on.committed()],
        "PENDING": [on.stage_opened(), on.dispatched(), on.abandoned()],
        "CLAIMED": [on.stage_opened(), on.dispatched()],
        "RUNNING": [on.stage_opened(), on.dispatched(), on.frame_started()],
    },
    {
        "dispatched": on.dispatched(on.BERT),
        "started": on.frame_started(),
        "started-stranger": on.frame_started(on.BERT),
        "heartbeat": on.frame_heartbeat(),
        "heartbeat-stranger": on.frame_heartbeat(on.BERT),
        "abandoned": on.abandoned(),
        "abandoned-stranger": on.abandoned(on.BERT),
        "committed": on.committed(),
        "failed": on.in_frame(FrameFailed(error=on.FAILURE)),
    },
    """
    event               absent   gone     PENDING     CLAIMED     RUNNING
    dispatched          CLAIMED  CLAIMED  CLAIMED     =           =
    started             =        =        =           RUNNING     RUNNING
    started-stranger    =        =        =           =           =
    heartbeat           =        =        =           CLAIMED     RUNNING
    heartbeat-stranger  =        =        =           =           =
    abandoned           =        =        =           PENDING     PENDING
    abandoned-stranger  =        =        =           =           =
    committed           =        =        COMPLETED!  COMPLETED!  COMPLETED!
    failed              =        =        FAILED!     FAILED!     FAILED!
    """,
)

STAGES = Machine(
    "stages",
    on.STAGE,
    {"absent": [on.STARTED], "OPEN": [on.stage_opened()]},
    {
        "opened": on.stage_opened(),
        "engaged": at(
            StageEngine(engine="spark", session_id="s", tag="t", slots=2), stage_id=on.STAGE
        ),
        "closed": at(StageClosed(status="DONE"), stage_id=on.STAGE),
    },
    """
    event    absent  OPEN
    opened   OPEN    =
    engaged  =       OPEN
    closed   =       DONE!
    """,
)

SHARDS = Machine(
    "frames",
    "shard-0",
    {
        "absent": [on.fanout_started(2)],
        "gone": [on.fanout_started(2), on.enqueued(0), on.shard_done(0)],
        "PENDING": [on.fanout_started(2), on.enqueued(0)],
    },
    {
        "enqueued": on.enqueued(0),
        "done": on.shard_done(0),
        "failed": on.shard_failed(0, final=True),
        "failed-once": on.shard_failed(0, final=False),
    },
    """
    event        absent   gone     PENDING
    enqueued     PENDING  PENDING  PENDING
    done         =        =        COMPLETED!
    failed       =        =        FAILED!
    failed-once  =        =        PENDING
    """,
)

LOOPS = Machine(
    "loops",
    on.LOOP,
    {"absent": [on.STARTED], "None": [on.loop_started()]},  # an open loop has no status yet
    {
        "started": on.loop_started(),
        "fanout": on.fanout_started(2),
        "fanin": FaninCompleted(loop_id=on.LOOP, status="complete", total=2, done=2),
        "done": LoopDone(loop_id=on.LOOP, step=on.STEP, status="ok", stats=LoopStats(total=2)),
    },
    """
    event    absent  None
    started  None    =
    fanout   None    None
    fanin    =       None
    done     =       ok!
    """,
)

MACHINES = [EXECUTION, COMMANDS, FRAMES, STAGES, SHARDS, LOOPS]


class Cell(NamedTuple):
    machine: Machine
    event: str
    before: str
    after: str


def cells() -> Iterator[Cell]:
    for machine in MACHINES:
        head, *lines = [line.split() for line in machine.table.strip().splitlines()]
        for event, *afters in lines:
            pairs = zip(head[1:], afters, strict=True)
            yield from (Cell(machine, event, before, after) for before, after in pairs)


ALWAYS_MOVES = {"event_count", "last_event_id", "last_event_type", "unmatched_events"}
"""Even an unmatched event was heard."""


def fixed_part(story: Story, machine: Machine) -> dict[str, object] | None:
    try:
        row = story.row(machine.surface, machine.row_id)
    except AssertionError:
        return None
    return {name: value for name, value in row.items() if name not in ALWAYS_MOVES}


@pytest.mark.parametrize(
    "cell", list(cells()), ids=lambda cell: f"{cell.machine.surface}: {cell.event}, {cell.before}"
)
def test_the_fold_moves_as_the_tables_say(cell: Cell) -> None:
    machine, event, before, after = cell
    story = given(*machine.ways[before])
    row = fixed_part(story, machine)
    assert before == "gone" or before == str(row["status"] if row else "absent")
    unmatched = story.state.execution.unmatched_events

    story.when(machine.events[event])

    is_unmatched = after == "="
    assert story.state.execution.unmatched_events - unmatched == is_unmatched
    if is_unmatched:
        assert fixed_part(story, machine) == row
        return
    assert str(story.row(machine.surface, machine.row_id)["status"]) == after.rstrip("!")
    assert story.is_open(machine.surface, machine.row_id) is not after.endswith("!")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.row_id or "execution")
def test_no_status_and_no_event_is_forgotten(machine: Machine) -> None:
    mine = [cell for cell in cells() if cell.machine is machine]
    assert {cell.event for cell in mine} == set(machine.events)
    assert {cell.before for cell in mine} == set(machine.ways)


def test_every_event_that_changes_a_status_is_in_a_table() -> None:
    happenings = [each for machine in MACHINES for each in machine.events.values()]
    in_tables = {type(each.event if isinstance(each, Placed) else each) for each in happenings}
    only_counted = {cls for cls, function in FOLDS.items() if function.__name__ == "_only_counted"}
    in_own_files = {*steps.FOLDS, *chunks.FOLDS, *business_objects.FOLDS}
    elsewhere = only_counted | in_own_files
    assert in_tables | elsewhere == set(FOLDS)
    assert not in_tables & elsewhere
