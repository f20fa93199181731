"""The reference adapter keeps every promise that memory can keep."""

import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.kernel.instant import Instant
from noetl.ports.event_log import EventLog
from noetl.testing.compliance.event_log import EventLogCompliance, Reopen


class TestMemoryEventLog(EventLogCompliance):
    @pytest.fixture
    def event_log(self) -> EventLog:
        return MemoryEventLog(lambda: Instant("2026-01-01T00:00:00.000000Z"))

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.skip("L11, L12: memory forgets when its process dies, so it never serves as a log")
