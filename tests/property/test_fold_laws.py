"""Laws of the fold: total, ends stay unless retried, a state frozen anywhere changes nothing."""

from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from noetl.domain.events import (
    CallDone,
    ChildStarted,
    CommandIssued,
    ExecutionRetried,
    LoopStarted,
    PlaybookInitialized,
    StepExited,
)
from noetl.domain.events.envelope import Draft, RecordedEvent
from noetl.domain.execution.accumulator import Accumulator
from noetl.domain.execution.fold import evolve, fold
from noetl.domain.execution.rows import SURFACES, TERMINAL, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.surfaces import (
    Row,
    checksum_bundle,
    live_checksum_bundle,
    open_rows,
    parity,
    plain,
    state_checksum,
)
from noetl.kernel import canonical_json
from noetl.testing.given import recorded
from noetl.testing.strategies import ANYTHING, EXECUTION, histories, jumbled_runs, runs

ANY_HISTORY = runs() | histories(events_min=5)
JUMBLED_HISTORY = histories(events_min=5, events_max=60) | jumbled_runs()
"""Random events have no order to lose, so only runs are jumbled: less to draw, quick to shrink."""

STATEFUL = (PlaybookInitialized, StepExited, ChildStarted, CommandIssued, CallDone, LoopStarted)
"""Events that leave what they carry in the state."""

_STATE = msgspec.json.Decoder(ExecutionState)


@given(ANY_HISTORY, st.data())
def test_a_state_frozen_anywhere_changes_nothing(drafts: list[Draft], data: st.DataObject) -> None:
    events = recorded(drafts, EXECUTION)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3)))
    whole = fold(events)

    state = ExecutionState()
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        state = _STATE.decode(canonical_json.encode(state))
        fold(events[start:end], state)

    assert state == whole
    assert checksum_bundle(state) == checksum_bundle(whole)
    assert state_checksum(state) == state_checksum(whole)


@given(histories(ANYTHING, STATEFUL, events_min=1, events_max=8))
def test_a_state_of_anything_at_all_can_be_frozen(drafts: list[Draft]) -> None:
    state = fold(recorded(drafts, EXECUTION))
    frozen = canonical_json.encode(state)
    assert _STATE.decode(frozen) == state
    assert canonical_json.encode(_STATE.decode(frozen)) == frozen


@given(JUMBLED_HISTORY)
def test_the_fold_is_total_and_only_a_retry_takes_an_end_back(drafts: list[Draft]) -> None:
    accumulator = Accumulator(ExecutionState())
    for event in recorded(drafts, EXECUTION):
        before = _marks(accumulator.state)
        evolve(accumulator, event.envelope, event.event)
        retried = event.event if isinstance(event.event, ExecutionRetried) else None
        _check_no_way_back(before, _marks(accumulator.state), retried)

    assert accumulator.state.execution.event_count == len(drafts)
    assert accumulator.state.stream_version == len(drafts)


@given(JUMBLED_HISTORY)
def test_what_the_decider_reads_agrees_with_itself(drafts: list[Draft]) -> None:
    accumulator = Accumulator(ExecutionState())
    for event in recorded(drafts, EXECUTION):
        evolve(accumulator, event.envelope, event.event)
        state = accumulator.state

        assert len(set(state.open_steps)) == len(state.open_steps)
        for name, step in state.steps.items():
            assert (name in state.open_steps) == (step.exited_event_id is None)
        assert all(sources for sources in state.tokens.values())
        assert state.calls.keys() <= state.commands.keys()
        assert state.loop_work.keys() <= state.loops.keys()
        outputs = [work.outputs for work in state.loop_work.values()]
        assert all(output.window.rows >= 0 for each in outputs for output in each)


@given(ANY_HISTORY)
def test_names_and_results_that_someone_holds_stay_as_they_were(drafts: list[Draft]) -> None:
    accumulator = Accumulator(ExecutionState())
    held: list[tuple[Any, bytes]] = []
    for event in recorded(drafts, EXECUTION):
        evolve(accumulator, event.envelope, event.event)
        state = accumulator.state
        held += [(each, canonical_json.encode(each)) for each in (state.ctx, state.results)]

    assert all(canonical_json.encode(each) == as_it_was for each, as_it_was in held)


@given(ANY_HISTORY)
def test_the_same_events_give_the_same_bytes_and_stay_as_they_are(drafts: list[Draft]) -> None:
    events, untouched = recorded(drafts, EXECUTION), recorded(drafts, EXECUTION)
    assert canonical_json.encode(fold(events)) == canonical_json.encode(fold(untouched))
    assert events == recorded(drafts, EXECUTION)


@given(ANY_HISTORY, st.randoms(use_true_random=False))
def test_live_rows_in_any_order_give_the_replayed_checksums(
    drafts: list[Draft], chance: Random
) -> None:
    rows, state = _rows(recorded(drafts, EXECUTION))
    for surface in SURFACES:
        chance.shuffle(rows[surface])

    live = live_checksum_bundle(rows)

    assert live == checksum_bundle(state)
    assert parity(checksum_bundle(state), live).matches


@given(histories(events_min=2), st.data())
def test_a_missing_event_is_another_checksum(drafts: list[Draft], data: st.DataObject) -> None:
    missing = data.draw(st.integers(0, len(drafts) - 1))
    rest = [draft for number, draft in enumerate(drafts) if number != missing]
    whole, part = fold(recorded(drafts, EXECUTION)), fold(recorded(rest, EXECUTION))
    assert state_checksum(whole) != state_checksum(part)


class _Marks(msgspec.Struct):
    """What may only go one way."""

    status: str
    ended_by: str | None
    visits: dict[str, tuple[int, str | None]]  # step -> (visit, the event it was left by)
    counts: tuple[int, ...]


def _marks(state: ExecutionState) -> _Marks:
    row = state.execution
    retired = (state.retired[surface].count for surface in SURFACES)
    return _Marks(
        row.status,
        row.terminal_event_id,
        {name: (step.visit, step.exited_event_id) for name, step in state.steps.items()},
        (row.event_count, row.unmatched_events, row.payload_refs.count, *retired),
    )


def _check_no_way_back(before: _Marks, after: _Marks, retried: ExecutionRetried | None) -> None:
    if before.status in TERMINAL:
        if retried is None:
            assert (after.status, after.ended_by) == (before.status, before.ended_by)
        else:
            assert (after.status, after.ended_by) == ("RUNNING", None)
    for name, (visit, left) in before.visits.items():
        later_visit, later_left = after.visits[name]
        assert later_visit >= visit
        if later_visit == visit and left is not None and (retried is None or retried.step != name):
            assert later_left == left
    assert all(later >= earlier for earlier, later in zip(before.counts, after.counts, strict=True))


def _rows(events: list[RecordedEvent]) -> tuple[dict[Surface, list[Row]], ExecutionState]:
    rows: dict[Surface, list[Row]] = {surface: [] for surface in SURFACES}
    state = fold(events, sink=lambda surface, row: rows[surface].append(plain(row)))
    for surface in SURFACES:
        rows[surface] += open_rows(state, surface)
    return rows, state
