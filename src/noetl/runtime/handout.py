"""Give open work to free slots: claims and frames, in the same append as their cause."""

from collections.abc import Iterator

import msgspec

from noetl.decider.engines import WAITS
from noetl.decider.frames import next_window, ordinal_of
from noetl.decider.waits import is_timer
from noetl.domain.events import (
    CommandClaimed,
    CommandStarted,
    Event,
    FrameDispatched,
    FrameStarted,
    ShardEnqueued,
)
from noetl.domain.execution.losses import is_given_up, is_shard_given_up
from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.domain.execution.state import LoopWork
from noetl.domain.execution.windows import window_as_cursor
from noetl.domain.playbook.needs import Kinds, kinds_needed
from noetl.domain.work import CommandWork, Work
from noetl.kernel.ids import FrameId, StepName
from noetl.kernel.instant import Instant, plus
from noetl.ports.telemetry import step_key, traceparent
from noetl.runtime import shards
from noetl.runtime.frame_work import HandedFrame, Lease, beside_frame, frame_source, frame_work
from noetl.runtime.placing import told_of
from noetl.runtime.reports import attempts_of, lease_of
from noetl.runtime.reports_frames import given_up
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
        source = frame_source(self._turn.running, work)
        return Need(self._known[step], work.stage_id, bool(work.policy.get(WAITS)), source)

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
    beside = told_of(running.source.scope, worker)
    turn.add(
        msgspec.structs.replace(
            about_command(claimed, row.command_id), annotations=beside.annotations
        ),
        about_command(started, row.command_id),
    )
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
                turn.add(about_frame(given_up(turn, work, frame), frame.frame_id, work.loop_id))


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
            rows, attempt = work.out[frame.frame_id], frame.attempts + 1
            again = HandedFrame(rows, frame.frame_id, frame.ordinal, attempt)
            yield _dispatch(turn, work, again, seat, terms)
        while (window := next_window(work)) is not None and not turn.is_full:
            seat = needs.seat(work.step, work)
            if seat is None:
                break
            new = HandedFrame(window, FrameId(turn.new_id()), ordinal_of(work, window), 1)
            yield _dispatch(turn, work, new, seat, terms)


def _abandoned(turn: Turn, work: LoopWork) -> list[FrameRow]:
    """Frames whose holder was lost and that nobody holds now."""
    rows = (turn.state.frames.get(frame) for frame in work.out)
    return [row for row in rows if row is not None and row.status == "PENDING"]


def _dispatch(
    turn: Turn, work: LoopWork, frame: HandedFrame, seat: Seat, terms: LeaseTerms
) -> Promise:
    lease_seconds = lease_of(work.policy, terms.lease_seconds, seat.worker.lease_seconds)
    lease = Lease(lease_seconds, plus(turn.now, seconds=lease_seconds))
    dispatched = _shard(turn, work, frame, seat, lease.until)
    events: list[Event] = [dispatched or _dispatched(turn, work, frame, seat, lease.until)]
    if dispatched is None and frame.window.rows and not seat.asks_by_itself:
        # A cursor's frame starts when it has claimed its rows, that of others when they say so.
        events.append(FrameStarted(worker_id=seat.worker.worker_id))
    serves, beside = seat.worker.serves, beside_frame(turn.running, work, seat.worker)
    about = [about_frame(event, frame.frame_id, work.loop_id) for event in events]
    about[0] = msgspec.structs.replace(
        about[0],
        command_id=None if serves is None else serves.command_id,
        meta=beside.meta,
        annotations=beside.annotations,
    )
    turn.add(*about)
    given = frame_work(turn.running, work, frame, lease)
    if terms.is_traced:
        told = _traceparent(turn, work.step, work.visit)
        given = msgspec.structs.replace(given, traceparent=told)
    return _promise(turn, seat, given)


def _shard(
    turn: Turn, work: LoopWork, frame: HandedFrame, seat: Seat, lease_until: Instant
) -> ShardEnqueued | None:
    if work.mode != "fanout":
        return None
    row = turn.state.frames.get(frame.frame_id)
    return shards.enqueued(work, row, frame.window.first, seat, lease_until)


def _dispatched(
    turn: Turn, work: LoopWork, frame: HandedFrame, seat: Seat, lease_until: Instant
) -> FrameDispatched:
    serves = seat.worker.serves
    dispatched = FrameDispatched(
        ordinal=frame.ordinal,
        worker_id=seat.worker.worker_id,
        lease_until=lease_until,
        attempt=frame.attempt,
        attempts_max=_attempts_max(work),
        cursor=window_as_cursor(frame.window),
        parent_frame_id=work.last_frame if frame.attempt == 1 else None,
        slot=None if serves is None else serves.slot,
        incarnation=seat.incarnation,
    )
    before = turn.running.holders.of(frame.frame_id)
    if before is None:
        return dispatched
    return msgspec.structs.replace(
        dispatched,
        previous_owner=before.worker_id,
        previous_attempts=frame.attempt - 1,
        prior_lease_until=before.lease_until,
    )


def _traceparent(turn: Turn, step: StepName, visit: int) -> str:
    return traceparent(turn.running.execution_id, step_key(step, visit))


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
