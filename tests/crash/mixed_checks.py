"""What must have happened in the world, and in the log, when a mixed playbook has ended."""

from pathlib import Path

from noetl.bootstrap.platform import open_platform
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.runtime.verify_log import verify_log
from tests.crash.counters import COUNTING, HONOURING, Counters
from tests.crash.mixed import BEADS, PAGES, ROWS
from tests.crash.run_checks import check_execution, check_trace


async def check_mixed(home: Path, trace: Path, execution: ExecutionId, counters: Counters) -> None:
    async with open_platform(Settings(home=str(home)), create=False) as platform:
        record = await check_execution(platform, execution, counters)
        check_trace(trace, record)
    assert counters.of(execution, COUNTING).keys() == {
        *(f"{execution}/page/{visit}/0/page/1" for visit in range(1, PAGES + 1)),
        *(f"{execution}/each/1/{row}/book/1" for row in range(ROWS)),
        *(f"{execution}/beads/1/{bead}/thread/1" for bead in range(BEADS)),
        f"{execution}/join/1/0/second/1",
    }
    assert counters.of(execution, HONOURING).keys() == {
        *(f"{execution}/each/1/{row}/reserve/1" for row in range(ROWS)),
        f"{execution}/flaky/1/0/flaky/1",
        f"{execution}/join/1/0/first/1",
    }
    assert len(record.children) <= 1
    for child in record.children:
        assert counters.of(child, COUNTING).keys() == {f"{child}/tell/1/0/tell/1"}
    # Whoever dies between the commit of a frame and the end of its journal leaves that behind.
    assert {path.stem for path in (home / "journals").glob(f"{execution}/*")} <= record.frames


async def check_whole_log(home: Path) -> None:
    async with open_platform(Settings(home=str(home)), create=False) as platform:
        report = await verify_log(platform.log)
        assert report.is_sound, report.faults
