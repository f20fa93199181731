"""What the author's code printed, as lines of the log: for people, never recorded."""

import logging
from typing import Any, Final

from noetl.pipeline.sensitive import SecretsSeen
from noetl.ports.tool import ToolCall, ToolFailed

PRINTED: Final = "noetl.printed"
"""The logger of these lines; a command that runs in sight of a person shows them."""

LINES_MAX: Final = 20
LINE_CHARS_MAX: Final = 500
_LOG = logging.getLogger(PRINTED)


def tell_printed(call: ToolCall, text: str, secrets: SecretsSeen) -> None:
    """The last lines, without the secrets that the row has used."""
    if not text or not _LOG.isEnabledFor(logging.INFO):
        return
    lines = str(secrets.scrub(text)).splitlines()
    about = {"about": {"step": call.step, "task": call.task, "execution_id": call.execution_id}}
    if len(lines) > LINES_MAX:
        _LOG.info("[%s lines before]", f"{len(lines) - LINES_MAX:,}", extra=about)
    for line in lines[-LINES_MAX:]:
        _LOG.info("%s", _short(line), extra=about)


def printed_by(error: Exception) -> str:
    """What code had printed before it failed."""
    py: dict[str, Any] = (error.py if isinstance(error, ToolFailed) else None) or {}
    return str(py.get("output") or "")


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…"
