"""Workers at the desk: how much each can take, and the work that lies ready for it."""

import asyncio
from collections import OrderedDict

from noetl.domain.work import Work, WorkerIdentity
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.kernel.instant import Instant


class Seat:
    """One worker. `free` counts slots that nobody promised work to."""

    def __init__(self, worker: WorkerIdentity, seen_at: Instant) -> None:
        self.worker = worker
        self.free = 0
        self.promised = 0  # assigned in a turn that is not durable yet
        self.mailbox: list[Work] = []
        self.has_mail = asyncio.Event()
        self.seen_at = seen_at

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

    def free(self) -> Seat | None:
        """The next worker with a free slot, in turns so that all of them get some."""
        for worker_id, seat in self._seats.items():
            if seat.free > 0:
                self._seats.move_to_end(worker_id)
                return seat
        return None

    def remove(self, worker_id: WorkerId) -> None:
        self._seats.pop(worker_id, None)

    def all(self) -> list[Seat]:
        return list(self._seats.values())
