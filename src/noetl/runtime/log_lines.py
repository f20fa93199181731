"""What is worth a line: told from events once they are durable, so that no line is a wish."""

import logging
from collections.abc import Sequence
from typing import Any

from noetl.domain.events import (
    CommandClaimed,
    CommandFailed,
    ExecutionCancelled,
    FrameAbandoned,
    FrameFailed,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
)
from noetl.domain.log import SealedEvent
from noetl.kernel.ids import ExecutionId

_LOG = logging.getLogger(__name__)
_LOST = "lease_lost"


def about(**names: object) -> dict[str, Any]:
    """What a line is about, as `extra` of a logger: ids and names, never data."""
    return {"about": {name: value for name, value in names.items() if value is not None}}


def tell_events(execution: ExecutionId, events: Sequence[SealedEvent]) -> None:
    """A listener of the coordinator."""
    if not _LOG.isEnabledFor(logging.WARNING):
        return
    for sealed in events:
        told = _line(sealed)
        if told is not None:
            level, message, names = told
            _LOG.log(level, message, extra=about(execution_id=execution, **names))


def _line(sealed: SealedEvent) -> tuple[int, str, dict[str, object]] | None:
    match sealed.event:
        case PlaybookInitialized() as event:
            return logging.INFO, "execution accepted", {"path": event.path}
        case PlaybookCompleted():
            return logging.INFO, "execution completed", {}
        case PlaybookFailed() as event:
            return logging.INFO, "execution failed", {"error_kind": event.error.kind}
        case ExecutionCancelled():
            return logging.INFO, "execution cancelled", {}
        case _:
            return _lost(sealed)


def _lost(sealed: SealedEvent) -> tuple[int, str, dict[str, object]] | None:
    envelope, event = sealed.envelope, sealed.event
    names: dict[str, object] = {"command_id": envelope.command_id, "frame_id": envelope.frame_id}
    if isinstance(event, CommandClaimed) and event.claim > 1:
        names |= {"worker": event.worker_id, "claim": event.claim}
        return logging.INFO, "command handed out again", names
    if isinstance(event, FrameAbandoned):
        names |= {"worker": event.previous_owner, "attempt": event.previous_attempts}
        return logging.INFO, "frame taken back, to be handed out again", names
    if isinstance(event, (CommandFailed, FrameFailed)) and event.error.kind == _LOST:
        return logging.WARNING, "given up: every worker that took it went quiet", names
    return None
