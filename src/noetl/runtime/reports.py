"""What workers say, turned into facts; a holder that lost its claim is refused."""

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.decider.answers import Decided
from noetl.domain.events import (
    CallDone,
    CallFailed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandReleased,
    FrameHeartbeat,
    FrameStarted,
)
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.losses import is_given_up
from noetl.domain.execution.rows import CommandRow, FrameRow
from noetl.domain.work import Call, CommandReport, Heartbeat, LeaseAnswer, NextAction
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import CommandId, FrameId, LoopId, WorkerId
from noetl.kernel.instant import plus
from noetl.runtime.turn import Turn, about_command, about_frame

RENEWED_BELOW = 0.9
"""The part of a lease below which a heartbeat renews it: a worker whose heartbeat was answered
counts on this much of a lease from then on."""

FRAME_ATTEMPTS_MAX = 10
"""As often as a command: processes that come and go in the middle of a frame lose it, too."""


def attempts_of(policy: Mapping[str, Any], usual: int = FRAME_ATTEMPTS_MAX) -> int:
    """Holders that a frame may have before it is given up."""
    return int(policy.get("max_attempts", usual))


def held_command(turn: Turn, command: CommandId, claim: int) -> CommandRow:
    """The command, if this claim is the one that counts."""
    row = turn.state.commands.get(command)
    if row is None:
        raise ClaimLost(command, "is over")
    if row.status == "PENDING":
        raise ClaimLost(command, "was handed back, or has not been claimed")
    if row.claim != claim or command in turn.running.void:
        raise ClaimLost(command, f"is held by claim {row.claim}, not by claim {claim}")
    return row


def held_frame(turn: Turn, frame: FrameId, attempt: int, worker: str) -> FrameRow:
    row = turn.state.frames.get(frame)
    if row is None:
        raise ClaimLost(f"frame {frame}", "is over")
    if row.attempts != attempt or row.worker_id != worker:
        raise ClaimLost(f"frame {frame}", f"is at attempt {row.attempts}, not {attempt}")
    return row


def heartbeat(turn: Turn, beat: Heartbeat, lease_seconds: float) -> LeaseAnswer:
    """Workers ask often, to hear of a cancel soon; the log hears only of leases that need it."""
    held = _held(turn, beat)
    if isinstance(held, FrameRow):
        stage = turn.state.stages.get(held.stage_id)
        policy = {} if stage is None else stage.frame_policy
        lease_seconds = lease_of(policy, lease_seconds, beat.lease_seconds)
    lease_until = plus(turn.now, seconds=lease_seconds)
    if isinstance(held, FrameRow) and _begins(turn, held):
        begun = FrameStarted(worker_id=beat.worker_id, lease_until=lease_until)
        turn.add(about_frame(begun, held.frame_id, loop_of(turn, held.frame_id)))
        return LeaseAnswer(next_action=next_action(turn), lease_until=lease_until)
    if held.lease_until is not None and held.lease_until > plus(
        turn.now, seconds=lease_seconds * RENEWED_BELOW
    ):
        return LeaseAnswer(next_action=next_action(turn), lease_until=held.lease_until)
    if beat.command_id is not None:
        kept = CommandHeartbeat(worker_id=beat.worker_id, claim=beat.claim, lease_until=lease_until)
        turn.add(about_command(kept, beat.command_id))
    else:
        frame = beat.frame_id or FrameId("")
        alive = FrameHeartbeat(worker_id=beat.worker_id, lease_until=lease_until)
        turn.add(about_frame(alive, frame, loop_of(turn, frame)))
    return LeaseAnswer(next_action=next_action(turn), lease_until=lease_until)


def _begins(turn: Turn, frame: FrameRow) -> bool:
    """The first that its holder says; a cursor's frame starts when it has claimed its rows."""
    loop = loop_of(turn, frame.frame_id)
    work = None if loop is None else turn.state.loop_work.get(loop)
    window = None if work is None else work.out.get(frame.frame_id)
    return frame.status == "CLAIMED" and window is not None and window.rows > 0


def lease_of(policy: dict[str, Any], usual: float, asked: float | None) -> float:
    """A holder may ask for another one than its stage, or the server, gives."""
    return float(policy.get("lease_seconds", usual)) if asked is None else asked


def _held(turn: Turn, beat: Heartbeat) -> CommandRow | FrameRow:
    if beat.command_id is not None:
        return held_command(turn, beat.command_id, beat.claim)
    return held_frame(turn, beat.frame_id or FrameId(""), beat.claim, beat.worker_id)


def call(turn: Turn, command: CommandId, claim: int, recorded: Call) -> LeaseAnswer:
    row = held_command(turn, command, claim)
    known = turn.state.calls.get(command, ())
    if not any((each.task, each.run) == (recorded.task, recorded.run) for each in known):
        turn.add(about_command(_call_event(row, recorded), command))
    return LeaseAnswer(next_action=next_action(turn), lease_until=row.lease_until)


def next_action(turn: Turn) -> NextAction:
    return "continue" if turn.state.execution.status == "RUNNING" else "wait"


def command_ended(turn: Turn, report: CommandReport) -> None:
    row = held_command(turn, report.command_id, report.claim)
    known = {(each.task, each.run) for each in turn.state.calls.get(report.command_id, ())}
    calls = [each for each in report.calls if (each.task, each.run) not in known]
    if report.error is None:
        calls = [_slim(each) for each in calls]
    ends = [_call_event(row, each) for each in calls]
    if not ends:
        ends = [_whole_call(row, report)]
    facts = [about_command(event, report.command_id) for event in ends]
    facts += [Decided(event=emitted) for emitted in report.emitted]
    turn.add(*facts, about_command(_command_end(report), report.command_id))


def take_back(turn: Turn, row: CommandRow) -> None:
    """Its holder is gone: the command may be claimed again, and fails when it was lost too often.

    A command that kills whoever runs it must not be handed out for ever.
    """
    if not is_given_up(turn.state, row, row.attempts_max):
        turn.running.void.add(row.command_id)
        return
    message = f"{row.claim} workers in turn took the command and went quiet"
    failed = CommandFailed(error=Failure(kind="lease_lost", message=message), claim=row.claim)
    turn.add(about_command(failed, row.command_id))


def hand_back(turn: Turn, row: CommandRow) -> None:
    """Its holder left in good order: the command may be claimed again, and nobody was lost."""
    released = CommandReleased(worker_id=row.worker_id or WorkerId(""), claim=row.claim)
    turn.add(about_command(released, row.command_id))
    turn.running.void.discard(row.command_id)


def _command_end(report: CommandReport) -> CommandCompleted | CommandFailed:
    if report.error is not None:
        return CommandFailed(
            error=report.error,
            claim=report.claim,
            worker_id=report.worker_id,
            result=report.result,
            writes=report.writes,
            duration_ms=report.duration_ms,
        )
    return CommandCompleted(
        claim=report.claim,
        worker_id=report.worker_id,
        result=report.result,
        writes=report.writes,
        duration_ms=report.duration_ms,
    )


def _call_event(row: CommandRow, recorded: Call) -> CallDone | CallFailed:
    if recorded.error is not None:
        return CallFailed(
            step=row.step,
            error=recorded.error,
            visit=row.visit,
            task=recorded.task,
            run=recorded.run,
            writes=recorded.writes,
            effect=recorded.effect,
            tries=recorded.tries,
            duration_ms=recorded.duration_ms,
        )
    return CallDone(
        step=row.step,
        result=recorded.result or Result(status="ok"),
        visit=row.visit,
        task=recorded.task,
        run=recorded.run,
        writes=recorded.writes,
        effect=recorded.effect,
        tries=recorded.tries,
        duration_ms=recorded.duration_ms,
    )


def _slim(recorded: Call) -> Call:
    """A command that succeeded is never tried again: its calls need no copy of their results."""
    result = None if recorded.result is None else Result(status=recorded.result.status)
    return msgspec.structs.replace(recorded, result=result)


def _whole_call(row: CommandRow, report: CommandReport) -> CallDone | CallFailed:
    """Users and their queries know `call.done`: every command has one."""
    if report.error is not None:
        return CallFailed(step=row.step, error=report.error, visit=row.visit)
    return CallDone(step=row.step, result=Result(status="ok"), visit=row.visit)


def loop_of(turn: Turn, frame: FrameId) -> LoopId | None:
    row = turn.state.frames.get(frame)
    stage = None if row is None else turn.state.stages.get(row.stage_id)
    return None if stage is None else stage.loop_id
