"""How facts about commands, and about the calls made under them, change the state."""

from noetl.domain.events import (
    CallDone,
    CallFailed,
    CallPartial,
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandReleased,
    CommandStarted,
)
from noetl.domain.events.envelope import Envelope
from noetl.domain.execution import chunks
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.losses import handed_back
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.rows import CommandRow
from noetl.domain.execution.steps import outcome, work_ended
from noetl.domain.work import Call
from noetl.kernel.ids import CommandId


def issued(fold: Accumulator, event: CommandIssued, envelope: Envelope) -> None:
    command_id = envelope.command_id or CommandId(envelope.aggregate_id)
    if command_id in fold.state.commands:
        fold.unmatched()
        return
    fold.state.execution.last_node_name = event.step
    fold.state.commands[command_id] = CommandRow(
        command_id=command_id,
        step=event.step,
        tool=event.tool,
        visit=event.visit,
        iteration=event.iteration,
        attempt=event.attempt,
        attempts_max=event.attempts_max,
        issued_event_id=envelope.event_id,
        stage_id=envelope.stage_id,
        frame_id=envelope.frame_id,
        parent_command_id=event.parent_command_id,
        placement=event.placement,
    )
    kept = fold.state.kept_calls.pop(event.step, None)
    if kept and event.attempt > 1:  # a person's retry adopts what its visit had recorded
        fold.state.calls[command_id] = kept


def claimed(fold: Accumulator, event: CommandClaimed, envelope: Envelope) -> None:
    """A higher claim is a takeover: the earlier holder is fenced off."""
    row = _open(fold, envelope)
    if row is None or event.claim <= row.claim:
        fold.unmatched()
        return
    row.status = "CLAIMED"
    row.worker_id = event.worker_id
    row.boot_id = event.boot_id
    row.claim = event.claim
    row.lease_until = event.lease_until
    row.placement = event.placement or row.placement
    row.claimed_event_id = envelope.event_id
    row.started_event_id = None


def started(fold: Accumulator, event: CommandStarted, envelope: Envelope) -> None:
    row = _open(fold, envelope)
    if row is None or event.claim != row.claim:
        fold.unmatched()
        return
    row.status = "RUNNING"
    row.started_event_id = envelope.event_id


def heartbeat(fold: Accumulator, event: CommandHeartbeat, envelope: Envelope) -> None:
    row = _open(fold, envelope)
    if row is None or event.claim != row.claim:
        fold.unmatched()
        return
    row.lease_until = event.lease_until


def released(fold: Accumulator, event: CommandReleased, envelope: Envelope) -> None:
    row = _open(fold, envelope)
    if row is None or event.claim != row.claim or row.worker_id != event.worker_id:
        fold.unmatched()
        return
    row.status = "PENDING"
    row.worker_id = row.boot_id = row.lease_until = None
    handed_back(fold.state, row.command_id)


def completed(fold: Accumulator, event: CommandCompleted, envelope: Envelope) -> None:
    row = _close(fold, "COMPLETED", envelope)
    if row is None:
        return
    if event.result is not None:
        row.result_status = event.result.status
        row.result_ref = fold.note_reference(event.result.reference)
    fold.state.calls.pop(row.command_id, None)
    fold.state.ctx = all_assigned(fold.state.ctx, event.writes)
    work_ended(fold, row.step, row.visit, outcome(event.result))
    fold.retire("commands", row)


def failed(fold: Accumulator, event: CommandFailed, envelope: Envelope) -> None:
    row = _close(fold, "FAILED", envelope)
    if row is not None:
        row.error_kind = event.error.kind
        fold.state.ctx = all_assigned(fold.state.ctx, event.writes)
        work_ended(fold, row.step, row.visit, outcome(event.result, event.error))
        _keep_calls(fold, row)
        fold.retire("commands", row)


def cancelled(fold: Accumulator, _event: CommandCancelled, envelope: Envelope) -> None:
    row = _close(fold, "CANCELLED", envelope)
    if row is not None:
        _keep_calls(fold, row)
        fold.retire("commands", row)


def called(fold: Accumulator, event: CallDone | CallFailed, envelope: Envelope) -> None:
    """A call is counted on its command; a call outside any command belongs to the step alone."""
    fold.state.execution.last_node_name = event.step
    if not isinstance(event, CallFailed):
        fold.note_reference(event.result.reference)
    if envelope.command_id is None:
        return
    row = _open(fold, envelope)
    if row is None:
        fold.unmatched()
        return
    row.calls += 1
    if event.task is not None:
        fold.state.calls.setdefault(row.command_id, []).append(_call(event))


def partial(fold: Accumulator, event: CallPartial, envelope: Envelope) -> None:
    fold.state.execution.last_node_name = event.step
    fold.note_reference(event.result.reference)
    row = _open(fold, envelope)
    if row is not None:
        row.calls += 1
        chunks.arrived(fold, event)
    elif envelope.command_id is not None:
        fold.unmatched()


def _keep_calls(fold: Accumulator, row: CommandRow) -> None:
    """Calls that succeeded are adopted when the visit is tried again; those that failed are not."""
    calls = fold.state.calls.pop(row.command_id, [])
    kept = [call for call in calls if call.error is None]
    if kept:
        fold.state.kept_calls[row.step] = kept


def _call(event: CallDone | CallFailed) -> Call:
    """What a later holder of the command adopts instead of calling again."""
    return Call(
        task=event.task or "",
        run=event.run,
        result=event.result if isinstance(event, CallDone) else None,
        error=event.error if isinstance(event, CallFailed) else None,
        writes=event.writes,
        effect=event.effect,
        tries=event.tries,
        duration_ms=event.duration_ms or 0,
    )


def _open(fold: Accumulator, envelope: Envelope) -> CommandRow | None:
    return fold.state.commands.get(envelope.command_id or CommandId(""))


def _close(fold: Accumulator, status: str, envelope: Envelope) -> CommandRow | None:
    row = fold.state.commands.pop(envelope.command_id or CommandId(""), None)
    if row is None:
        fold.unmatched()
        return None
    fold.state.handed_back.pop(row.command_id, None)
    row.status = status
    row.terminal_event_id = envelope.event_id
    row.terminal_version = envelope.stream_version
    return row


FOLDS: dict[type, FoldFunction] = {
    CommandIssued: issued,
    CommandClaimed: claimed,
    CommandStarted: started,
    CommandHeartbeat: heartbeat,
    CommandReleased: released,
    CommandCompleted: completed,
    CommandFailed: failed,
    CommandCancelled: cancelled,
    CallDone: called,
    CallFailed: called,
    CallPartial: partial,
}
