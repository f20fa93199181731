"""Cursors for processes of the compliance suite."""

from pathlib import Path

from noetl.ports.cursor import Cursor
from noetl.tools.cursors import CursorDrivers
from tests.tools.tool_calls import services


def cursor(kind: str, folder: str) -> Cursor:
    return CursorDrivers(services(Path(folder))).get(kind)
