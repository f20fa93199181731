"""A stage with two effects for each row, and what must hold of it whatever was killed meanwhile."""

from typing import Any, NamedTuple

from noetl.bootstrap.platform import Platform
from noetl.domain.events import FrameAbandoned, FrameDispatched
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.wire.codec import open_stored
from tests.crash.counters import COUNTING, HONOURING
from tests.crash.run_checks import check_execution
from tests.stages.held_counters import HeldCounters

PATH = "tests/killed"
ROWS, FRAME_ROWS, SLOTS = 600, 40, 2
ROWS_AT_ONCE = 4
LEASE_SECONDS = 20.0
SLOT = "spark/"

EFFECTS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: killed, path: tests/killed}
workload: {url: "", rows: 0, lease: 20}
workflow:
  - step: each
    loop:
      in: "{{ range(rows) | list }}"
      iterator: number
      engine: spark
      spec:
        mode: parallel
        max_in_flight: IN_FLIGHT
        frame: {max_rows: FRAME_ROWS, row_concurrency: AT_ONCE, lease_seconds: LEASE}
    tool:
      - {name: reserve, kind: http, method: POST, url: "{{ url }}/honouring/reserve",
         json: {number: "{{ iter.number }}"}, timeout: 300}
      - {name: book, kind: http, method: POST, url: "{{ url }}/counting/book",
         json: {number: "{{ iter.number }}"}, timeout: 300, set: {ctx.last: "{{ iter.number }}"}}
      - {name: answer, kind: noop, result: {square: "{{ iter.number * iter.number }}"}}
    next: done
  - step: done
    tool:
      kind: noop
      result:
        squares: "{{ each.results | map(attribute='square') | sum }}"
        stats: "{{ each.stats }}"
        last: "{{ ctx.last }}"
"""


def text(*, lease_seconds: float = LEASE_SECONDS, frames_per_slot: int = 1) -> str:
    sizes = {
        "FRAME_ROWS": FRAME_ROWS,
        "AT_ONCE": ROWS_AT_ONCE,
        "IN_FLIGHT": ROWS_AT_ONCE * SLOTS * frames_per_slot,
        "LEASE": f"{lease_seconds:g}",
    }
    sized = EFFECTS
    for name, size in sizes.items():
        sized = sized.replace(name, str(size))
    return sized


def frame_of(key: str) -> int:
    """The number of the frame with the row that made this effect."""
    return int(key.split("/")[3]) // FRAME_ROWS


class Recorded(NamedTuple):
    at: Instant
    event: RecordedEvent


async def log_of(platform: Platform, execution: ExecutionId) -> list[Recorded]:
    found: list[Recorded] = []
    while page := await platform.log.read(execution, after_version=len(found), limit=500):
        found += [Recorded(each.ingest_time, open_stored(each)) for each in page]
    return found


def check_result(result: Any) -> None:
    assert result["squares"] == sum(number * number for number in range(ROWS))
    assert (result["stats"]["succeeded"], result["stats"]["failed"]) == (ROWS, 0)
    assert result["last"] == ROWS - 1


async def check_whole(
    platform: Platform, execution: ExecutionId, counters: HeldCounters, in_doubt: set[str]
) -> None:
    """Each row once in its results; an effect twice only where nobody could know of the first."""
    await check_execution(platform, execution, counters)
    rows = {f"{execution}/each/1/{row}" for row in range(ROWS)}
    assert counters.of(execution, HONOURING) == {f"{row}/reserve/1": 1 for row in rows}
    counted = counters.of(execution, COUNTING)
    assert counted.keys() == {f"{row}/book/1" for row in rows}
    repeated = {key for key, times in counted.items() if times > 1}
    assert repeated == in_doubt, (len(repeated), len(in_doubt))


def check_leases(events: list[Recorded], frames_lost: int) -> None:
    """Every frame that was lost was said to be, and then given to somebody else or to a later
    incarnation; no more were lost than the slots had."""
    holders: dict[str, FrameDispatched] = {}
    lost: list[str] = []
    free: set[str] = set()
    for each in events:
        frame = each.event.envelope.frame_id or ""
        match each.event.event:
            case FrameAbandoned(previous_owner=owner):
                assert holders[frame].worker_id == owner
                lost.append(frame)
                free.add(frame)
            case FrameDispatched() as again if frame in holders:
                earlier = holders[frame]
                assert frame in free, f"frame {frame} was given away while somebody had it"
                assert again.attempt == earlier.attempt + 1
                assert (again.worker_id, again.incarnation) != (
                    earlier.worker_id,
                    earlier.incarnation,
                )
                free.discard(frame)
                holders[frame] = again
            case FrameDispatched() as first:
                holders[frame] = first
            case _:
                pass
    assert len(lost) <= frames_lost, lost
    assert lost
    assert not free


def leases_again(events: list[Recorded]) -> int:
    """How many frames were given to a second holder, or to a third."""
    given = [each.event.event for each in events]
    return len([each for each in given if isinstance(each, FrameDispatched) and each.attempt > 1])
