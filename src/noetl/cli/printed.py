"""What code of a playbook prints, shown to the person who runs it here."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from noetl.cli.output import shown
from noetl.pipeline.printed import PRINTED

LINES_MAX = 200
"""A loop may print without end; whoever wants all of it reads the log."""


@contextmanager
def printed_shown(note: Callable[[str], None]) -> Iterator[None]:
    """Lines of this process; those of workers elsewhere are in their logs."""
    logger = logging.getLogger(PRINTED)
    handler = _Notes(note)
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # else a line would be there twice when the log shows them too
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


class _Notes(logging.Handler):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note
        self._lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._lines += 1
        if self._lines <= LINES_MAX:
            step = getattr(record, "about", {}).get("step", "")
            self._note(f"{shown(step)} | {shown(record.getMessage())}")
        elif self._lines == LINES_MAX + 1:
            self._note("… and more; NOETL_LOG_LEVEL=info with --json shows all that is printed")
