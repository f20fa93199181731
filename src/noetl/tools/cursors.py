"""Which databases a loop can claim its rows from, each driver made when it is first asked for."""

from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.ports.cursor import Cursor
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.registry import OnFirstUse

_ALL: tuple[OnFirstUse[Cursor], ...] = (
    OnFirstUse("postgres", "noetl.tools.cursor_postgres", "PostgresCursor", "postgres"),
    OnFirstUse("sqlite", "noetl.tools.cursor_sqlite", "SqliteCursor"),
    OnFirstUse("duckdb", "noetl.tools.cursor_duckdb", "DuckdbCursor", "duckdb"),
)
_DRIVERS = {driver.kind: driver for driver in _ALL}


class CursorDrivers:
    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._made: dict[str, Cursor] = {}

    def get(self, kind: str) -> Cursor:
        """Raises ToolFailed for a kind that is unknown, or whose driver is not installed."""
        if kind not in self._made:
            self._made[kind] = self._driver(kind)(self._services)
        return self._made[kind]

    async def close(self) -> None:
        while self._made:
            _, driver = self._made.popitem()
            await driver.close()

    def _driver(self, kind: str) -> "OnFirstUse[Cursor]":
        if kind in _DRIVERS:
            return _DRIVERS[kind]
        meant = nearest(kind, _DRIVERS)
        advice = f"did you mean {meant!r}?" if meant else f"use {choices(sorted(_DRIVERS))}"
        raise failed("client_error", f"a loop cannot claim rows from {shown(kind)!r}; {advice}")
