"""A holder that dies in the middle of a frame, and the next one, with the real interpreter."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from noetl.adapters.memory.credential_store import MemoryCredentialStore
from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.domain.work import FrameReport, FrameWork
from noetl.kernel.ids import FrameId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.tool import Tool, ToolCall, ToolResult
from tests.memory_results import memory_results
from tests.unit.runtime.worker_clock import VirtualClock
from tests.unit.runtime.worker_scene import EXECUTION, LATER, LOOP, Scene, frame, only_frame

ORDERS = ["a", "b", "c", "d"]
TASKS = ("charge", "notify")
EFFECTS = LOOP.replace(
    "tool: {kind: noop}",
    """tool:
    - charge: {kind: noop, result: "{{ order }}"}
    - notify: {kind: noop, result: "{{ charge.receipt }}"}""",
)
CYCLES = [f"77/load/1/{row}/{task}/1" for row in range(len(ORDERS)) for task in TASKS]


class Till:
    """A tool that remembers each payment by its key, until the power fails."""

    waits = False

    def __init__(self, payments_max: int) -> None:
        self.keys: list[str] = []
        self.payments_max = payments_max
        self.power_failed = asyncio.Event()

    def get(self, kind: str) -> Tool:
        return self

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        return True

    async def run(self, call: ToolCall) -> ToolResult:
        if len(self.keys) >= self.payments_max:
            self.power_failed.set()
            await asyncio.Event().wait()
        self.keys.append(call.idempotency_key)
        await asyncio.sleep(0)
        return ToolResult(value={"receipt": f"{call.task} {call.parameters['result']}"})

    async def close(self) -> None:
        """Nothing to give back."""


def scene_of(till: Till, journal: MemoryFrameJournal, steps: str) -> Scene:
    clock = VirtualClock()
    credentials = MemoryCredentialStore(lambda: LATER, lambda: "1")
    interpreter = Interpreter(till, credentials, memory_results(), clock, lambda: "chance")
    return Scene(interpreter, steps=steps, clock=clock, journal=journal)


async def run_until_the_power_fails(
    till: Till, journal: MemoryFrameJournal, work: FrameWork, steps: str = EFFECTS
) -> None:
    scene = scene_of(till, journal, steps)
    async with scene.running() as running:
        await scene.do(work)
        await scene.clock.advance(1)
        await till.power_failed.wait()
        running.cancel()
    assert scene.desk.reports == []


async def run_to_the_end(
    till: Till, journal: MemoryFrameJournal, work: FrameWork, steps: str = EFFECTS
) -> FrameReport:
    scene = scene_of(till, journal, steps)
    async with scene.running():
        await scene.do(work)
        await scene.clock.advance(1)
        return only_frame(scene.desk)


@pytest.mark.parametrize("payments", range(len(CYCLES)))
async def test_sequential_rows_go_on_where_the_last_holder_was(payments: int) -> None:
    till, journal = Till(payments), MemoryFrameJournal()
    await run_until_the_power_fails(till, journal, frame(ORDERS, mode="sequential"))
    till.payments_max = 100

    report = await run_to_the_end(till, journal, frame(ORDERS, mode="sequential", attempt=2))

    assert [each.value for each in report.outcomes] == [
        {"receipt": f"notify charge {order}"} for order in ORDERS
    ]
    assert till.keys == CYCLES
    left = len(CYCLES) - payments
    effects = report.metrics["effects"]
    assert (effects["fired"], effects["adopted"]) == (left, payments)
    assert CYCLES[payments] in report.repeated  # it may have fired: nobody can know
    assert len(report.repeated) <= 2  # its row, and one that was marked together with it
    assert await journal.read(EXECUTION, FrameId("f1")) == []


@pytest.mark.parametrize("payments", range(len(CYCLES)))
async def test_rows_side_by_side_fire_again_at_most_what_nobody_recorded(payments: int) -> None:
    till, journal = Till(payments), MemoryFrameJournal()
    await run_until_the_power_fails(till, journal, frame(ORDERS, row_concurrency=3))
    recorded = {
        f"77/load/1/{entry.row}/{entry.call.task}/{entry.call.run}"
        for entry in await journal.read(EXECUTION, FrameId("f1"))
        if entry.call is not None
    }
    till.payments_max = 100

    report = await run_to_the_end(till, journal, frame(ORDERS, row_concurrency=3, attempt=2))

    assert set(till.keys) == set(CYCLES)
    twice = {key for key in till.keys if till.keys.count(key) > 1}
    assert twice <= set(report.repeated)
    assert twice.isdisjoint(recorded)
    assert report.row_count == len(ORDERS)


@pytest.mark.parametrize("payments", range(len(CYCLES)))
async def test_only_rows_that_may_have_begun_are_in_doubt(payments: int) -> None:
    till, journal = Till(payments), MemoryFrameJournal()
    steps = EFFECTS.replace("{kind: noop,", "{kind: noop, effects: at_most_once,")
    await run_until_the_power_fails(till, journal, frame(ORDERS, mode="sequential"), steps)
    till.payments_max = 100

    work = frame(ORDERS, mode="sequential", failure="continue", attempt=2)
    report = await run_to_the_end(till, journal, work, steps)

    assert report.in_doubt == (CYCLES[payments],)
    assert [outcome.index for outcome in report.outcomes if outcome.error is not None] == [
        payments // len(TASKS)
    ]
    assert report.row_error is not None
    assert report.row_error.kind == "effect_in_doubt"
    assert len(till.keys) == len(set(till.keys))


async def test_a_holder_that_was_lost_before_its_first_effect_leaves_no_doubt() -> None:
    till, journal = Till(100), MemoryFrameJournal()

    report = await run_to_the_end(till, journal, frame(ORDERS, mode="sequential", attempt=2))

    assert (report.repeated, report.metrics["effects"]["fired"]) == ((), len(CYCLES))
