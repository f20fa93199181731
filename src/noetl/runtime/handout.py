"""Give open work to free slots: claims and frames, in the same append as their cause."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from noetl.decider.engines import WAITS
from noetl.decider.frames import next_window, ordinal_of, row_concurrency
from noetl.decider.waits import is_timer
from noetl.domain.events import (
    CommandClaimed,
    CommandStarted,
    Event,
    FrameDispatched,
    FrameFailed,
    FrameStarted,
    ShardFailed,
)
from noetl.domain.events.values import Failure
from noetl.domain.execution.losses import is_given_up, is_shard_given_up
from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.domain.execution.state import LoopWork, Unfinished, Window
from noetl.domain.execution.windows import window_as_cursor
from noetl.domain.playbook.needs import Kinds, kinds_needed
from noetl.domain.work import CommandWork, FrameWork, RowOutcome, Work
from noetl.kernel.ids import FrameId, StageId, StepName
from noetl.kernel.instant import Instant, plus
from noetl.ports.telemetry import step_key, traceparent
from noetl.runtime import shards
from noetl.runtime.reports import attempts_of, lease_of
from noetl.runtime.seat import Seat
from noetl.runtime.seats import Need, Seats
from noetl.runtime.turn import Turn, about_command, about_frame


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How long work is lent, and how often it may be lent again."""

    lease_seconds: float = 60.0
    attempts_max: int = 10
    is_traced: bool = False  # work says which span it belongs to


class Promise(msgspec.Struct, frozen=True):
    """Work for a seat, once the turn that it was promised in is durable."""

    seat: Seat
    work: Work


class _Frame(NamedTuple):
    window: Window
    frame_id: FrameId
    ordinal: int
    attempt: int


class _Needs:
    """What the work of each step needs, asked once a turn; and for which of it nobody is free."""

    def __init__(self, turn: Turn, seats: Seats) -> None:
        self._turn = turn
        self._seats = seats
        self._known: dict[StepName, Kinds] = {}
        self._in_vain: set[Need] = set()

    def of(self, step: StepName, work: LoopWork | None = None) -> Need:
        if step not in self._known:
            self._known[step] = kinds_needed(self._turn.running.plan.playbook, step)
        if work is None:
            return Need(self._known[step])
        return Need(self._known[step], work.stage_id, bool(work.policy.get(WAITS)))

    def seat(self, step: StepName, work: LoopWork | None = None) -> Seat | None:
        need = self.of(step, work)
        if need in self._in_vain:
            return None
        seat = self._seats.free(self._turn.now, need)
        if seat is None:
            self._in_vain.add(need)
        return seat


def hand_out(turn: Turn, seats: Seats, terms: LeaseTerms) -> list[Promise]:
    """As much as there are free slots for; what is left makes the execution starve."""
    promises: list[Promise] = []
    needs = _Needs(turn, seats)
    if turn.state.execution.status == "RUNNING":
        promises += _commands(turn, needs, terms)
        promises += _frames(turn, needs, terms)
    left = frozenset(_left(turn, needs))
    if left:
        seats.starving[turn.running.execution_id] = left
    else:
        seats.starving.pop(turn.running.execution_id, None)
    return promises


def _commands(turn: Turn, needs: _Needs, terms: LeaseTerms) -> Iterator[Promise]:
    """Work that nobody is free for holds up no other."""
    for row in _claimable(turn):
        if turn.is_full:
            return
        seat = needs.seat(row.step)
        if seat is not None:
            yield _promise(turn, seat, _claim(turn, row, seat, terms))


def _claimable(turn: Turn) -> list[CommandRow]:
    void, steps = turn.running.void, turn.running.plan.playbook.steps
    return [
        row
        for row in turn.state.commands.values()
        if (row.status == "PENDING" or row.command_id in void) and not is_timer(steps.get(row.step))
    ]


def _claim(turn: Turn, row: CommandRow, seat: Seat, terms: LeaseTerms) -> CommandWork:
    worker, running = seat.worker, turn.running
    claim = row.claim + 1
    lease_until = plus(turn.now, seconds=terms.lease_seconds)
    claimed = CommandClaimed(
        worker_id=worker.worker_id, claim=claim, lease_until=lease_until, boot_id=worker.boot_id
    )
    started = CommandStarted(worker_id=worker.worker_id, claim=claim)
    turn.add(about_command(claimed, row.command_id), about_command(started, row.command_id))
    running.void.discard(row.command_id)
    return CommandWork(
        scope=running.source.scope,
        execution_id=running.execution_id,
        playbook_digest=running.plan.digest,
        step=row.step,
        visit=row.visit,
        command_id=row.command_id,
        claim=claim,
        lease_until=lease_until,
        lease_seconds=terms.lease_seconds,
        facts=running.facts[row.command_id],
        journal=tuple(turn.state.calls.get(row.command_id, ())),
        visit_attempt=row.attempt,
        traceparent=_traceparent(turn, row.step, row.visit) if terms.is_traced else "",
    )


def give_up_lost_frames(turn: Turn) -> None:
    """Before anything is decided: a frame that failed for good may be the last one of its loop."""
    for work in list(turn.state.loop_work.values()):
        for frame in _abandoned(turn, work):
            if _is_lost(turn, work, frame) and not turn.is_full:
                turn.add(about_frame(_given_up(work, frame), frame.frame_id, work.loop_id))


def _is_lost(turn: Turn, work: LoopWork, frame: FrameRow) -> bool:
    """Tries of a shard that failed are counted apart."""
    if work.mode != "fanout":
        return is_given_up(turn.state, frame, _attempts_max(work))
    is_tried_again = shards.is_waiting(work, frame.frame_id)
    return is_shard_given_up(turn.state, frame, _attempts_max(work)) and not is_tried_again


def _frames(turn: Turn, needs: _Needs, terms: LeaseTerms) -> Iterator[Promise]:
    for work in list(turn.state.loop_work.values()):
        for frame in _abandoned(turn, work):
            seat = None if turn.is_full else needs.seat(work.step, work)
            if seat is None:
                break
            again = _Frame(
                work.out[frame.frame_id], frame.frame_id, frame.ordinal, frame.attempts + 1
            )
            yield _dispatch(turn, work, again, seat, terms)
        while (window := next_window(work)) is not None and not turn.is_full:
            seat = needs.seat(work.step, work)
            if seat is None:
                break
            new = _Frame(window, FrameId(turn.new_id()), ordinal_of(work, window), 1)
            yield _dispatch(turn, work, new, seat, terms)


def _abandoned(turn: Turn, work: LoopWork) -> list[FrameRow]:
    """Frames whose holder was lost and that nobody holds now."""
    rows = (turn.state.frames.get(frame) for frame in work.out)
    return [row for row in rows if row is not None and row.status == "PENDING"]


def _dispatch(turn: Turn, work: LoopWork, frame: _Frame, seat: Seat, terms: LeaseTerms) -> Promise:
    lease_seconds = lease_of(work.policy, terms.lease_seconds, seat.worker.lease_seconds)
    lease_until = plus(turn.now, seconds=lease_seconds)
    events: list[Event] = []
    if work.mode == "fanout":
        row = turn.state.frames.get(frame.frame_id)
        shard = shards.enqueued(work, row, frame.window.first, seat, lease_until)
        events += [] if shard is None else [shard]
    events = events or _dispatched(work, frame, seat, lease_until)
    turn.add(*(about_frame(event, frame.frame_id, work.loop_id) for event in events))
    given = _frame_work(turn, work, frame, lease_seconds)
    if terms.is_traced:
        told = _traceparent(turn, work.step, work.visit)
        given = msgspec.structs.replace(given, traceparent=told)
    return _promise(turn, seat, given)


def _dispatched(work: LoopWork, frame: _Frame, seat: Seat, lease_until: Instant) -> list[Event]:
    dispatched = FrameDispatched(
        ordinal=frame.ordinal,
        worker_id=seat.worker.worker_id,
        lease_until=lease_until,
        attempt=frame.attempt,
        attempts_max=_attempts_max(work),
        cursor=window_as_cursor(frame.window),
        parent_frame_id=work.last_frame if frame.attempt == 1 else None,
        incarnation=seat.incarnation,
    )
    if not frame.window.rows:  # a cursor's frame starts when it has claimed its rows
        return [dispatched]
    return [dispatched, FrameStarted(worker_id=seat.worker.worker_id)]


def _traceparent(turn: Turn, step: StepName, visit: int) -> str:
    return traceparent(turn.running.execution_id, step_key(step, visit))


def _frame_work(turn: Turn, work: LoopWork, frame: _Frame, lease_seconds: float) -> FrameWork:
    running, window = turn.running, frame.window
    facts = running.facts[work.loop_id]
    if work.mode == "sequential":  # rows see what the rows before them wrote
        facts = msgspec.structs.replace(facts, ctx=turn.state.ctx)
    items, earlier = work.collection, work.earlier.get(frame.frame_id)
    shard = work.shards.get(frame.frame_id)
    return FrameWork(
        scope=running.source.scope,
        execution_id=running.execution_id,
        playbook_digest=running.plan.digest,
        step=work.step,
        visit=work.visit,
        stage_id=work.stage_id or StageId(""),
        frame_id=frame.frame_id,
        ordinal=frame.ordinal,
        attempt=frame.attempt,
        lease_until=plus(turn.now, seconds=lease_seconds),
        lease_seconds=lease_seconds,
        mode=work.mode,
        first_index=window.first,
        row_count=window.rows,
        total=work.total,
        row_concurrency=row_concurrency(work),
        seconds_max=work.policy.get("max_seconds"),
        bytes_max=work.policy.get("max_bytes"),
        heartbeat_seconds=work.policy.get("heartbeat_seconds"),
        failure=work.policy.get("failure", "fail_fast"),
        facts=facts,
        rows=None if items is None else items[window.first : window.first + window.rows],
        collection=work.collection_ref,
        visit_attempt=work.attempt,
        after=() if earlier is None else earlier.frames,
        kept=() if earlier is None else _kept(earlier),
        kept_ref=None if earlier is None else earlier.output_ref,
        policy=work.policy if work.mode == "cursor" else {},
        claimed=work.cursor.claimed.get(frame.frame_id),
        shard_attempt=1 if shard is None else shard.attempt,
    )


def _kept(earlier: Unfinished) -> tuple[RowOutcome, ...]:
    """Beside a reference they are a preview."""
    if earlier.output_ref is not None:
        return ()
    return msgspec.convert(earlier.outcomes, tuple[RowOutcome, ...])


def _given_up(work: LoopWork, frame: FrameRow) -> FrameFailed | ShardFailed:
    if work.mode == "fanout":
        return shards.given_up(work, frame)
    message = f"frame {frame.ordinal} was lost {frame.attempts} times; its workers went quiet"
    return FrameFailed(error=Failure(kind="lease_lost", message=message))


def _attempts_max(work: LoopWork) -> int:
    return attempts_of(work.policy)


def _promise(turn: Turn, seat: Seat, work: Work) -> Promise:
    seat.promise()
    turn.if_lost(seat.withdraw)
    return Promise(seat, work)


def _left(turn: Turn, needs: _Needs) -> Iterator[Need]:
    """What is needed for work that somebody could take."""
    state = turn.state
    if state.execution.status != "RUNNING":
        return
    for row in _claimable(turn):
        yield needs.of(row.step)
    for work in state.loop_work.values():
        if next_window(work) is not None or _abandoned(turn, work):
            yield needs.of(work.step, work)
