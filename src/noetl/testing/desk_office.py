"""A desk for its promises to be tested at: who else may use it, and its time."""

from typing import Any, Protocol

from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.work import Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId
from noetl.ports.work_desk import WorkDesk

CLAIM_SECONDS = 5.0


class Office(Protocol):
    """A desk, who else may use it, and its time."""

    desk: WorkDesk
    lease_seconds: float
    attempts_max: int  # of a command

    async def start(self, playbook: str, **payload: Any) -> ExecutionId:
        """Register the text and start it."""
        ...

    async def cancel(self, execution: ExecutionId) -> None: ...

    async def pass_time(self, seconds: float) -> None:
        """Leases that run out meanwhile have been looked after when this returns."""
        ...

    async def events(self, execution: ExecutionId) -> list[RecordedEvent]: ...


async def one(office: Office, by: WorkerIdentity) -> Work:
    """One piece of work, and no more than that."""
    (work,) = await office.desk.claim(by, 1, CLAIM_SECONDS)
    return work
