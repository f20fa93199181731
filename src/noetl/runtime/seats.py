"""Workers at the desk: how much each can take, and the work that lies ready for it."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from noetl.domain.work import Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.instant import Instant, plus

AWAY_SECONDS = 5.0
"""A worker that asks again and again, instead of waiting, is quicker than this."""


class Seat:
    """One worker. `free` counts slots that nobody promised work to."""

    def __init__(self, worker: WorkerIdentity, seen_at: Instant) -> None:
        self.worker = worker
        self.free = 0
        self.promised = 0  # assigned in a turn that is not durable yet
        self.mailbox: list[Work] = []
        self.has_mail = asyncio.Event()
        self.seen_at = seen_at
        self.incarnation = incarnation_of(worker)
        self._listeners = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While the worker waits for an answer that can bring it work."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    def is_there(self, now: Instant) -> bool:
        """A worker that has gone must not be given work that it will never fetch."""
        return self._listeners > 0 or now <= plus(self.seen_at, seconds=AWAY_SECONDS)

    def promise(self) -> None:
        self.free -= 1
        self.promised += 1

    def free_slot(self) -> None:
        """Its work ends in the turn that is being taken: the slot can have what follows from it."""
        self.free += 1

    def keep_slot(self) -> None:
        """That turn could not be appended: the work has not ended."""
        self.free -= 1

    def deliver(self, work: Work) -> None:
        self.promised -= 1
        self.mailbox.append(work)
        self.has_mail.set()

    def withdraw(self) -> None:
        """The turn that promised the work could not be appended."""
        self.promised -= 1
        self.free += 1

    def collect(self) -> list[Work]:
        taken, self.mailbox = self.mailbox, []
        self.has_mail.clear()
        return taken


def incarnation_of(worker: WorkerIdentity) -> int:
    """The boot as a number: what `frame.dispatched` keeps of it."""
    return int.from_bytes(hashlib.sha256(worker.boot_id.encode()).digest()[:6])


class Seats:
    def __init__(self) -> None:
        self._seats: OrderedDict[WorkerId, Seat] = OrderedDict()
        self.starving: OrderedDict[ExecutionId, None] = OrderedDict()
        """Executions with work that no worker had a slot for, longest waiting first."""

    def seat(self, worker: WorkerIdentity, now: Instant) -> Seat:
        seat = self._seats.get(worker.worker_id)
        if seat is None or seat.worker.boot_id != worker.boot_id:
            seat = self._seats[worker.worker_id] = Seat(worker, now)
        seat.worker = worker
        seat.seen_at = now
        return seat

    def find(self, worker_id: WorkerId) -> Seat | None:
        return self._seats.get(worker_id)

    def free(self, now: Instant) -> Seat | None:
        """The next worker with a free slot, in turns so that all of them get some."""
        for worker_id, seat in self._seats.items():
            if seat.free > 0 and seat.is_there(now):
                self._seats.move_to_end(worker_id)
                return seat
        return None

    def is_current(self, worker_id: WorkerId | None, boot_id: str | None) -> bool:
        """Whether this is the newest boot of the worker that we know of."""
        seat = self._seats.get(worker_id or WorkerId(""))
        return seat is not None and seat.worker.boot_id == boot_id

    def is_incarnation(self, worker_id: WorkerId | None, incarnation: int | None) -> bool:
        seat = self._seats.get(worker_id or WorkerId(""))
        return seat is not None and seat.incarnation == incarnation

    def remove(self, worker: WorkerIdentity) -> bool:
        """A worker that was followed by another boot of itself has no seat to give up."""
        if not self.is_current(worker.worker_id, worker.boot_id):
            return False
        del self._seats[worker.worker_id]
        return True

    def all(self) -> list[Seat]:
        return list(self._seats.values())
