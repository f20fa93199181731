"""What a frame tells of the time of its tasks."""

from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.domain.work import FrameReport
from noetl.kernel.ids import WorkerId
from noetl.pipeline.job import RowResult
from noetl.pipeline.timing import TaskTime
from noetl.ports.tool import ToolCall
from noetl.runtime.frames import Frames
from noetl.runtime.frames_metrics import task_numbers
from tests.unit.dsl.writing import playbook, with_steps
from tests.unit.pipeline.rows import FirmHold, FunctionTool, House, ObedientClock, fails
from tests.unit.runtime.worker_scene import frame

STEPS = """
- step: load
  loop: {in: "{{ workload.rows }}", iterator: order, spec: {mode: sequential}}
  tool:
    - name: get
      kind: http
      url: "{{ order }}"
      spec:
        policy:
          rules:
            - when: "{{ output.error.retryable }}"
              then: {do: retry, attempts: 3, delay: 5}
    - {name: look, kind: http, url: u}
    - {name: keep, kind: postgres, query: "{{ get }}", effects: none}
"""
PARTS = ("task_ms", "render_ms", "tool_ms")


class SteppingClock(ObedientClock):
    """Every look at it takes a millisecond."""

    def monotonic(self) -> float:
        self.seconds += 0.001
        return self.seconds


class PatientHold(FirmHold):
    is_told_to_wait = False


async def ran(clock: ObedientClock, **tools: FunctionTool) -> FrameReport:
    house = House(clock, **tools)
    frames = Frames(house.interpreter, house.results, MemoryFrameJournal(), clock)
    work = frame(["a", "b"], mode="sequential", failure="continue")
    end = await frames.run(work, playbook(with_steps(STEPS)), PatientHold(), WorkerId("w"))
    return end.report


async def test_a_frame_tells_the_time_of_each_task_and_of_each_kind() -> None:
    clock, refused = SteppingClock(), iter([True, False, False])

    async def slow(call: ToolCall) -> int:
        if call.task == "get" and next(refused):
            raise fails("rate_limit", retryable=True)
        await clock.sleep(0.25)
        return 1

    async def slower(_call: ToolCall) -> int:
        await clock.sleep(0.5)
        return 2

    report = await ran(clock, http=FunctionTool(slow), postgres=FunctionTool(slower))

    metrics = report.metrics
    get, look, keep = (metrics["by_task"][name] for name in ("get", "look", "keep"))
    assert get == {"kind": "http", "tries": 3, "task_ms": 512, "render_ms": 3, "tool_ms": 503}
    assert look == {"kind": "http", "tries": 2, "task_ms": 508, "render_ms": 2, "tool_ms": 502}
    assert keep == {
        **{"kind": "postgres", "tries": 2},
        **{"task_ms": 1_008, "render_ms": 2, "tool_ms": 1_002},
    }
    assert metrics["by_kind"] == {
        "http": {"tries": 5, **{part: get[part] + look[part] for part in PARTS}},
        "postgres": {"tries": 2, **{part: keep[part] for part in PARTS}},
    }
    assert [metrics[f"total_{part}"] for part in PARTS] == [2_028, 7, 2_007]
    assert metrics["task_ms"] == {"get": 512, "look": 508, "keep": 1_008}
    assert (metrics["outcomes"], metrics["row_concurrency"]) == ({"ok": 2}, 1)


async def test_a_tool_that_failed_took_its_time_too() -> None:
    clock = SteppingClock()

    async def breaks(_call: ToolCall) -> int:
        await clock.sleep(0.25)
        raise fails("server_error")

    report = await ran(clock, http=FunctionTool(breaks))

    assert report.metrics["by_task"] == {
        "get": {"kind": "http", "tries": 2, "task_ms": 508, "render_ms": 2, "tool_ms": 502}
    }
    assert report.metrics["outcomes"] == {"failed": 2}


def test_times_are_rounded_once_and_add_up() -> None:
    def row() -> RowResult:
        times = {
            "a": TaskTime("http", 1, 0.0014, 0.0004, 0.0006),
            "b": TaskTime("http", 1, 0.0014, 0.0004, 0.0006),
        }
        return RowResult(status="ok", times=times)

    numbers = task_numbers([row() for _ in range(10)])

    assert numbers["by_task"]["a"] == numbers["by_task"]["b"]
    assert numbers["by_task"]["a"] == {
        **{"kind": "http", "tries": 10},
        **{"task_ms": 14, "render_ms": 4, "tool_ms": 6},
    }
    assert [numbers[f"total_{part}"] for part in PARTS] == [28, 8, 12]
    assert task_numbers([]) == {
        **{"task_ms": {}, "by_task": {}, "by_kind": {}},
        **{"total_task_ms": 0, "total_render_ms": 0, "total_tool_ms": 0},
    }
