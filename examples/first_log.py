"""A first log: record an execution, look at it at any point, and prove what you see.

Run it with `make demo`. Everything it writes is in `.noetl/demo`.
"""

import asyncio
import sys
from collections.abc import Sequence

from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.settings import Settings
from noetl.domain.events import (
    BusinessObjectChanged,
    CallDone,
    CommandClaimed,
    CommandCompleted,
    CommandIssued,
    CommandStarted,
    Event,
    PlaybookCompleted,
    PlaybookInitialized,
    StepEntered,
    StepExited,
)
from noetl.domain.events.envelope import Draft, Source
from noetl.domain.events.values import Result
from noetl.domain.log import EMPTY_STREAM, Append, AtPosition
from noetl.kernel import canonical_json
from noetl.kernel.errors import VersionConflict
from noetl.kernel.ids import CommandId, EventId, ExecutionId, StepName, WorkerId
from noetl.kernel.instant import plus
from noetl.runtime.certificate import certify
from noetl.runtime.group_commit import GroupCommit
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.wire.codec import seal

SETTINGS = Settings(home=".noetl/demo")
STEP, WORKER = StepName("ship_orders"), WorkerId("worker-1")


def story(platform: Platform, execution: ExecutionId) -> list[Draft]:
    """One step that ships two orders. Events are facts: past tense, typed, small."""
    command = CommandId(f"{execution}/{STEP}/1/0/1")
    shipped = Result(status="ok", context={"orders": 2})

    def draft(event: Event, command_id: CommandId | None = None) -> Draft:
        return Draft(
            event_id=EventId(platform.new_id()),
            event=event,
            event_time=platform.clock(),
            command_id=command_id,
        )

    lease = plus(platform.clock(), seconds=60)
    return [
        draft(PlaybookInitialized(path="examples/orders", playbook_digest="5f" * 32)),
        draft(StepEntered(step=STEP)),
        draft(CommandIssued(step=STEP, tool="http"), command),
        draft(CommandClaimed(worker_id=WORKER, claim=1, lease_until=lease), command),
        draft(CommandStarted(worker_id=WORKER, claim=1), command),
        draft(_order("A-1", "shipped", total=120.5)),
        draft(_order("A-2", "shipped", total=80)),
        draft(CallDone(step=STEP, result=shipped), command),
        draft(CommandCompleted(worker_id=WORKER, claim=1, result=shipped), command),
        draft(StepExited(step=STEP, status="ok")),
        draft(PlaybookCompleted(step=STEP, result=shipped)),
    ]


def _order(number: str, status: str, *, total: float) -> BusinessObjectChanged:
    return BusinessObjectChanged(
        object="order", id=number, status=status, attributes={"total": total}
    )


async def main() -> int:
    async with open_platform(SETTINGS) as platform:
        execution = ExecutionId(platform.new_id())
        append = await record(platform, execution)
        await show_conflict(platform, append)
        await show_time_bar(platform, execution, append)
        return await show_certificate(platform, execution)


async def record(platform: Platform, execution: ExecutionId) -> Append:
    source = Source(scope=SETTINGS.scope, execution_id=execution, producer="noetl://demo")
    sealed = seal(story(platform, execution), EMPTY_STREAM, source)
    append = Append(SETTINGS.scope, execution, 0, sealed)
    landed = await GroupCommit(platform.log).append(append)
    print(f"recorded   {landed.version} events of execution {execution} in one atomic append")
    return append


async def show_conflict(platform: Platform, append: Append) -> None:
    try:
        await GroupCommit(platform.log).append(append)
    except VersionConflict as conflict:
        print(f"refused    the same append again: {conflict}")


async def show_time_bar(platform: Platform, execution: ExecutionId, append: Append) -> None:
    print("\ntime bar   position  status     commands open  orders   checksum")
    first = (await platform.log.read(execution))[0].position
    for offset in (0, 4, 6, len(append.events) - 1):
        request = _request(execution, AtPosition(first + offset))
        replayed = await Replay(platform.log).state(request)
        state = replayed.state
        print(
            f"           {first + offset:>8}  {state.execution.status:<9}"
            f"  {len(state.commands):>13}  {len(state.business_objects):>6}"
            f"   {replayed.report.checksum[:16]}…"
        )


async def show_certificate(platform: Platform, execution: ExecutionId) -> int:
    request = _request(execution)
    snapshot = await Replay(platform.log).take_snapshot(request, platform.clock())
    await platform.snapshots.save(snapshot)
    certificate = await certify(platform.log, platform.snapshots, request)
    roads: Sequence[tuple[str, bool]] = (
        ("all events", True),
        ("a snapshot", certificate.snapshot_agrees),
        ("plain rows", certificate.rows.matches),
    )
    print(f"\ncertificate {certificate.checksum} ({canonical_json.FORM}, sha256)")
    for road, agrees in roads:
        print(f"            from {road}: {'the same' if agrees else 'DIFFERENT'}")
    print("\nLook yourself:")
    for command in ("log tail", f"replay state {execution}", "log verify"):
        print(f"  NOETL_HOME={SETTINGS.home} .venv/bin/noetl {command}")
    return 0 if certificate.proved else 1


def _request(execution: ExecutionId, cutoff: AtPosition | None = None) -> ReplayRequest:
    return ReplayRequest(scope=SETTINGS.scope, execution_id=execution, cutoff=cutoff)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
