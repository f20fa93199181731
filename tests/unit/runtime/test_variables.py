"""Who wrote a variable: told by the newest event that did."""

from noetl.kernel.ids import StepName
from noetl.runtime.variables import Writers
from noetl.wire.codec import open_stored
from tests.unit.domain.happenings import (
    STARTED,
    claimed,
    committed,
    completed,
    dispatched,
    issued,
    loop_started,
    stage_opened,
)
from tests.unit.runtime.tracing import enter, leave, log_of
from tests.unit.runtime.written import FIRST


async def test_the_newest_write_of_any_part_counts() -> None:
    log = await log_of(
        STARTED,
        enter("load"),
        issued(),
        claimed(),
        completed(writes={"total.paid": 1, "kept": 2}),
        leave("load", writes={"last": 3}),
        enter("after"),
        leave("after", writes={"total.open": 4}),
        loop_started(mode="sequential"),
        stage_opened(),
        dispatched(),
        committed(writes={"row": 5}),
    )
    rows = await log.read(FIRST, after_version=0, limit=100)
    writers = Writers()
    for row in rows:
        writers.add(open_stored(row))
    times = [open_stored(row).envelope.event_time for row in rows]

    assert {name: written.step for name, written in writers.newest.items()} == {
        "total": "after",
        "kept": StepName("load"),
        "last": "load",
        "row": "load",
    }
    assert [writers.newest[name].time for name in ("kept", "last", "total", "row")] == [
        times[4],
        times[5],
        times[7],
        times[11],
    ]
