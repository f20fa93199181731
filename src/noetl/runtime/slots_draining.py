"""Slots of engines when the process that they work for is to stop: they end with the rows that run.

They hear of it by their heartbeats. What they have not ended in time is handed back.
"""

from collections.abc import Callable

from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.recovery import void_leases

LOOK_SECONDS = 0.1


async def drain_slots(coordinator: Coordinator, seconds_max: Callable[[], float]) -> None:
    """How long it may take is asked again and again: somebody may be in a hurry by then."""
    clock = coordinator.held.clock
    began = clock.monotonic()
    while _held(coordinator) and clock.monotonic() - began < seconds_max():
        await clock.sleep(LOOK_SECONDS)
    held = _held(coordinator)
    for seat in coordinator.seats.all():
        if seat.worker.serves is not None:
            coordinator.seats.release(seat.worker.serves.stage_id)
    for execution, workers in held.items():
        await void_leases(coordinator, execution, workers, handed_back=True)


def _held(coordinator: Coordinator) -> dict[ExecutionId, frozenset[WorkerId]]:
    """Slots that hold frames, by execution."""
    slots = {seat.worker.worker_id for seat in coordinator.seats.all() if seat.worker.serves}
    found = {
        execution: frozenset(
            frame.worker_id
            for frame in running.state.frames.values()
            if frame.worker_id is not None and frame.worker_id in slots
        )
        for execution, running in coordinator.running.items()
    }
    return {execution: workers for execution, workers in found.items() if workers}
