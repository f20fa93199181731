"""What must hold of a log whose writer was killed."""

from itertools import groupby
from typing import Any

from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.fold import fold
from noetl.domain.log import StoredEvent
from noetl.kernel.ids import ExecutionId
from noetl.ports.event_log import EventLog
from noetl.runtime.verify_log import verify_log, verify_stream
from noetl.wire.codec import open_stored
from tests.crash.stores import opened_log
from tests.crash.writer import EXECUTIONS

LOOKS_MAX = 3  # the last commit of a client that was killed may still be under way in the server


class Acknowledged:
    """Every event that a writer was told is safe: its checksum by its version."""

    def __init__(self) -> None:
        self._checksums: dict[ExecutionId, dict[int, str]] = {name: {} for name in EXECUTIONS}

    @property
    def events(self) -> int:
        return sum(map(len, self._checksums.values()))

    def of(self, execution: ExecutionId) -> dict[int, str]:
        return self._checksums[execution]

    def add(self, words: list[dict[str, Any]]) -> None:
        for word in words:
            told = self._checksums[word["execution"]]
            first = word["version"] - len(word["checksums"]) + 1
            for version, checksum in enumerate(word["checksums"], start=first):
                assert version not in told, f"version {version} was acknowledged twice"
                told[version] = checksum


async def check_log(address: str, acknowledged: Acknowledged) -> int:
    """Raises for the first thing that does not hold; returns how many events there are."""
    async with opened_log(address) as log:
        for _ in range(LOOKS_MAX):
            whole = await verify_log(log)
            assert whole.is_sound, whole.faults
            total = sum([await _check_stream(log, name, acknowledged) for name in EXECUTIONS])
            if total == whole.events:
                return total
    raise AssertionError(f"{whole.events} events in commit order, {total} in all streams")


async def _check_stream(log: EventLog, execution: ExecutionId, acknowledged: Acknowledged) -> int:
    stream = await verify_stream(log, execution)
    assert stream.is_sound, stream.faults
    rows: list[StoredEvent] = []
    while page := await log.read(execution, after_version=len(rows)):
        rows += page
    assert len(rows) >= stream.version
    _check_acknowledged(rows, acknowledged.of(execution))
    events = [open_stored(row, verify=False) for row in rows]
    _check_appends_are_whole(events)
    _check_fold(events)
    return len(rows)


def _check_acknowledged(rows: list[StoredEvent], told: dict[int, str]) -> None:
    """There and equal: the verification has compared the bytes with their checksums."""
    stored = {row.stream_version: row.checksum for row in rows}
    lost = {version: checksum for version, checksum in told.items() if version not in stored}
    assert not lost, f"{len(lost)} acknowledged events are gone, the first at {min(lost)}"
    assert told == {version: stored[version] for version in told}


def _check_appends_are_whole(events: list[RecordedEvent]) -> None:
    seen: set[str] = set()
    for name, append in groupby(events, key=lambda recorded: recorded.envelope.meta["append"]):
        metas = [recorded.envelope.meta for recorded in append]
        assert [meta["index"] for meta in metas] == list(range(metas[0]["size"])), f"torn: {metas}"
        assert name not in seen, f"append {name} was written twice"
        seen.add(name)
    ids = {recorded.envelope.event_id for recorded in events}
    assert len(ids) == len(events), "an event was written twice"


def _check_fold(events: list[RecordedEvent]) -> None:
    state = fold(events).execution
    assert (state.event_count, state.unknown_events, state.unmatched_events) == (len(events), 0, 0)
