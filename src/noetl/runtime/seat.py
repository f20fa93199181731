"""A worker at the desk: how much it can take, whether it is there, and the work that lies ready."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from noetl.domain.naming.distance import Distance, is_within
from noetl.domain.naming.locator import Locality
from noetl.domain.playbook.needs import Kinds
from noetl.domain.work import Work, WorkerIdentity
from noetl.kernel.ids import StageId
from noetl.kernel.instant import Instant, plus
from noetl.runtime.placing import reached_by

AWAY_SECONDS = 5.0
"""A worker that asks again and again, instead of waiting, is quicker than this."""

SILENT_SECONDS = 10.0
"""A slot that works says so every few seconds: a stage of silent ones is not left to them."""


class Seat:
    """One worker. `free` counts slots that nobody promised work to."""

    def __init__(self, worker: WorkerIdentity, seen_at: Instant) -> None:
        self.worker = worker
        self.free = 0
        self.promised = 0  # assigned in a turn that is not durable yet
        self.mailbox: list[Work] = []
        self.has_mail = asyncio.Event()
        self.seen_at = seen_at  # when it last asked for work
        self.heard_at = seen_at  # when it last said anything
        self.is_sent_away = False  # a slot that makes room for another stage
        self.incarnation = incarnation_of(worker)
        self._listeners = 0
        self._is_settled = asyncio.Event()  # nothing is promised

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

    def status(self, now: Instant) -> Literal["ready", "busy", "quiet"]:
        """`ready` asks for work, `busy` says that it works, `quiet` has said nothing for long."""
        if self.is_there(now):
            return "ready"
        return "busy" if now <= plus(self.heard_at, seconds=AWAY_SECONDS) else "quiet"

    def is_silent(self, now: Instant) -> bool:
        return not self.is_there(now) and now > plus(self.heard_at, seconds=SILENT_SECONDS)

    def has(self, kinds: Kinds) -> bool:
        """A worker that does not say which tools it has is taken to have all of them."""
        tools = self.worker.tools
        return not tools or kinds.issubset(tools)

    def is_for(self, stage_id: StageId | None, *, has_own: bool) -> bool:
        """A slot of an engine takes frames of its stage, which others leave to it."""
        if self.is_sent_away:
            return False
        serves = self.worker.serves
        return not has_own if serves is None else serves.stage_id == stage_id

    def distance(self, source: Locality | None) -> Distance | None:
        """How far it is from the rows of a frame; None: nobody knows where they are."""
        serves = self.worker.serves
        known = source if serves is None or serves.source is None else serves.source
        return None if known is None else reached_by(self.worker, known)

    def is_near_enough(self, source: Locality | None) -> bool:
        reached = self.distance(source)
        return reached is None or is_within(reached, self.worker.distance_max)

    @property
    def asks_by_itself(self) -> bool:
        """A worker by frames says when it wants more, and how many."""
        return self.worker.serves is not None and self.worker.serves.is_shared

    @property
    def has_work_ready(self) -> bool:
        return bool(self.mailbox) or self.promised > 0

    @property
    def in_use(self) -> int:
        """Slots with work, or with work promised to them."""
        return max(0, self.worker.slots - self.free)

    def promise(self) -> None:
        self.free -= 1
        self.promised += 1
        self._is_settled.clear()

    def free_slot(self) -> None:
        """Its work ends in the turn that is being taken: the slot can have what follows from it."""
        self.free += 1

    def keep_slot(self) -> None:
        """That turn could not be appended: the work has not ended."""
        self.free -= 1

    async def settled(self) -> None:
        """Until all that was promised lies ready, or will not come."""
        if self.promised > 0:
            await self._is_settled.wait()

    def deliver(self, work: Work) -> None:
        self._end_promise()
        self.mailbox.append(work)
        self.has_mail.set()

    def withdraw(self) -> None:
        """The turn that promised the work could not be appended."""
        self._end_promise()
        self.free += 1

    def _end_promise(self) -> None:
        self.promised -= 1
        if self.promised == 0:
            self._is_settled.set()

    def collect(self) -> list[Work]:
        taken, self.mailbox = self.mailbox, []
        self.has_mail.clear()
        return taken


def incarnation_of(worker: WorkerIdentity) -> int:
    """What `frame.dispatched` keeps of the boot: of a slot its number, of others one made of it."""
    if worker.serves is not None and worker.boot_id.isdecimal():
        return int(worker.boot_id)
    return int.from_bytes(hashlib.sha256(worker.boot_id.encode()).digest()[:6])
