"""A state is as large as what is open, not as what has happened."""

import copy
from collections.abc import Callable, Iterable
from itertools import chain

import msgspec
import pytest

from noetl.domain.events.envelope import Draft
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve
from noetl.domain.execution.state import ExecutionState
from noetl.domain.log import EMPTY_STREAM
from noetl.domain.surfaces import open_rows
from noetl.kernel import canonical_json
from noetl.kernel.ids import StepName
from noetl.testing.given import given
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal
from tests.unit.domain.happenings import (
    STARTED,
    committed,
    completed,
    dispatched,
    issued,
    order,
    stage_opened,
)

EXECUTION = execution_ids(1)[0]
STEP = StepName("poll")
COUNTERS_BYTES_MAX = 64
"""What numbers may grow by when they get more digits."""


def folded(drafts: Iterable[Draft]) -> ExecutionState:
    """Without the wire, which would take most of the time."""
    accumulator = Accumulator(ExecutionState())
    (first,) = seal([History(EXECUTION).draft(STARTED)], EMPTY_STREAM, source_of(EXECUTION))
    for version, draft in enumerate(drafts, start=1):
        envelope = msgspec.structs.replace(
            first.envelope,
            event_id=draft.event_id,
            event_type=draft.event.TYPE,
            stream_version=version,
            command_id=draft.command_id,
            stage_id=draft.stage_id,
            frame_id=draft.frame_id,
        )
        evolve(accumulator, envelope, draft.event)
    return accumulator.state


def visits(count: int) -> ExecutionState:
    history = History(EXECUTION)
    cycles = (command_cycle(history, STEP, visit) for visit in range(1, count + 1))
    return folded(chain(begin(history), *cycles))


def frames(count: int) -> ExecutionState:
    history = History(EXECUTION)
    return folded(chain(begin(history), loop_of_frames(history, STEP, count)))


@pytest.mark.parametrize(
    ("history", "many", "events"),
    [(visits, 10_000, 70_001), (frames, 2_000, 6_005)],
    ids=["visits of a step", "frames of a loop"],
)
def test_a_long_history_leaves_no_larger_state(
    history: Callable[[int], ExecutionState], many: int, events: int
) -> None:
    short, long = history(10), history(many)

    assert long.execution.event_count == events
    assert long.execution.unmatched_events == 0
    sizes = [len(canonical_json.encode(state)) for state in (short, long)]
    assert sizes[1] - sizes[0] <= COUNTERS_BYTES_MAX
    for rows in ("commands", "loops", "stages", "frames", "business_objects"):
        assert len(getattr(long, rows)) == len(getattr(short, rows)) == 0
    assert len(long.steps) == len(short.steps)


def test_of_a_committed_frame_its_open_loop_keeps_one_output_and_no_row() -> None:
    history = History(EXECUTION)
    drafts = [*begin(history), *loop_of_frames(history, STEP, 200)]
    state = folded(drafts[:-2])  # neither its stage nor the loop has ended

    (work,) = state.loop_work.values()
    assert state.frames == {}
    assert len(work.outputs) == 200
    assert (work.out, work.returned, work.next_index) == ({}, [], work.total)


def test_what_is_finished_leaves_a_count_and_a_chain() -> None:
    story = given(issued(), completed())
    (row,) = story.finished["commands"]
    retired = story.state.retired["commands"]
    assert retired.count == 1
    assert retired.digest == canonical_json.sha256_hex(bytes(32) + canonical_json.encode(row))
    assert story.state.retired["frames"].count == 0


def test_a_row_goes_to_the_sink_at_the_moment_it_finishes() -> None:
    story = given(stage_opened(), dispatched())
    assert not any(story.finished.values())
    story.when(committed())
    assert [row["frame_id"] for row in story.finished["frames"]] == ["f1"]
    assert open_rows(story.state, "frames") == []


def test_what_happens_later_does_not_change_a_finished_row() -> None:
    story = given(issued(), completed(), order(deleted=True))
    before = {surface: list(rows) for surface, rows in story.finished.items()}
    chains = copy.deepcopy(story.state.retired)
    story.when(completed(), stage_opened(), order(status="back"))
    assert story.finished == before
    assert story.state.retired == chains
