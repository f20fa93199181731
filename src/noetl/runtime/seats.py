"""The workers at the desk: who takes what, and whose a stage is."""

from collections import OrderedDict
from typing import NamedTuple

from noetl.domain.naming.distance import Preference, rank
from noetl.domain.naming.locator import Locality
from noetl.domain.playbook.model import Playbook
from noetl.domain.playbook.needs import ANY, Kinds, kinds_needed
from noetl.domain.work import StageServed, WorkerIdentity
from noetl.kernel.errors import StageOver
from noetl.kernel.ids import ExecutionId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant, plus
from noetl.runtime.seat import Seat


class Need(NamedTuple):
    """What a piece of work asks of whoever takes it."""

    kinds: Kinds
    stage_id: StageId | None = None  # of a frame
    is_for_engine: bool = False  # slots of its engine take it, and others only when told to
    source: Locality | None = None  # where its rows were made


class Seats:
    def __init__(self) -> None:
        self._seats: OrderedDict[WorkerId, Seat] = OrderedDict()
        self.offered: Kinds | None = None
        """Kinds that can be waited for, besides those that workers have; None: all. Work of any
        other kind goes to whoever is free, to fail there with advice instead of waiting."""
        self.is_closed = False  # nobody is given anything any more
        self.preference: Preference = "zone"
        self._served_by: dict[StageId, set[WorkerId]] = {}
        self.left_to_all: set[StageId] = set()
        """Stages that waited for their engine in vain."""
        self.waiting: set[StageId] = set()
        """Stages whose first slot does not come, because others have all there are."""
        self.gave_way: set[StageId] = set()
        """Stages that have fewer slots since than they asked for."""
        self.starving: OrderedDict[ExecutionId, frozenset[Need]] = OrderedDict()
        """Executions with work that no worker had a slot for, longest waiting first, and what
        that work needs."""

    def seat(self, worker: WorkerIdentity, now: Instant) -> Seat:
        """Raises StageOver for a slot that was followed by a later incarnation of itself, or that
        is to make room for another stage."""
        seat = self._seats.get(worker.worker_id)
        if worker.serves is not None and self._may_go(worker, worker.serves, seat):
            raise StageOver(worker.serves.stage_id)
        if seat is None or seat.worker.boot_id != worker.boot_id:
            seat = self._seats[worker.worker_id] = Seat(worker, now)
            if worker.serves is not None and not worker.serves.is_shared:
                stage_id = worker.serves.stage_id
                self._served_by.setdefault(stage_id, set()).add(worker.worker_id)
                self.waiting.discard(stage_id)
        seat.worker = worker
        seat.seen_at = seat.heard_at = now
        return seat

    def _may_go(self, worker: WorkerIdentity, serves: StageServed, seat: Seat | None) -> bool:
        if seat is None:  # one more of those that have some already
            return not serves.is_shared and self._gives_way(serves.stage_id)
        if seat.worker.boot_id == worker.boot_id:
            return seat.is_sent_away and not seat.has_work_ready
        return _is_later(seat.worker.boot_id, worker.boot_id)

    def _gives_way(self, stage_id: StageId) -> bool:
        if not self.waiting - {stage_id} or stage_id not in self._served_by:
            return False
        self.gave_way.add(stage_id)
        return True

    def hear(self, worker_id: WorkerId, now: Instant) -> None:
        """A worker that works and asks for nothing is not lost."""
        if worker_id in self._seats:
            self._seats[worker_id].heard_at = now

    def is_leaving(self, worker_id: WorkerId) -> bool:
        """Whether it is a slot of an engine that goes: with this process, or for another stage."""
        seat = self._seats.get(worker_id)
        if seat is None or seat.worker.serves is None:
            return False
        return self.is_closed or seat.is_sent_away

    def find(self, worker_id: WorkerId) -> Seat | None:
        return self._seats.get(worker_id)

    def free(self, now: Instant, need: Need) -> Seat | None:
        """The next worker with a free slot for this, in turns so that all get some; of several
        the nearest to its rows, and those far away when nobody near has a free slot."""
        if self.is_closed:
            return None
        asked, has_own = self._asked(need.kinds), self._has_own(need, now)
        fit = (
            seat
            for seat in self._seats.values()
            if seat.free > 0
            and seat.is_for(need.stage_id, has_own=has_own)
            and seat.has(asked)
            and seat.is_there(now)
            and seat.is_near_enough(need.source)
        )
        if need.source is None or self.preference == "any":
            found = next(fit, None)
        else:
            found = min(fit, key=lambda seat: self._rank(seat, need), default=None)
        if found is not None:
            self._seats.move_to_end(found.worker.worker_id)
        return found

    def _rank(self, seat: Seat, need: Need) -> int:
        return rank(seat.distance(need.source) or "any", self.preference)

    def hungry(self, now: Instant) -> ExecutionId | None:
        """The execution that has starved longest of those that somebody could feed now."""
        free = [seat for seat in self._seats.values() if seat.free > 0 and seat.is_there(now)]
        if not free or self.is_closed:
            return None
        known: dict[frozenset[Need], bool] = {}
        for execution, needs in self.starving.items():
            if needs not in known:
                known[needs] = any(self._could_feed(need, free, now) for need in needs)
            if known[needs]:
                return execution
        return None

    def _could_feed(self, need: Need, free: list[Seat], now: Instant) -> bool:
        asked, has_own = self._asked(need.kinds), self._has_own(need, now)
        return any(
            seat.is_for(need.stage_id, has_own=has_own)
            and seat.has(asked)
            and seat.is_near_enough(need.source)
            for seat in free
        )

    def _has_own(self, need: Need, now: Instant) -> bool:
        """Whether slots of an engine work on the stage, as far as anybody has heard of them, or
        are waited for."""
        if need.is_for_engine and need.stage_id not in self.left_to_all:
            return True
        served_by = self._served_by.get(need.stage_id or StageId(""), ())
        return any(not self._seats[worker_id].is_silent(now) for worker_id in served_by)

    def release(self, stage_id: StageId) -> frozenset[WorkerId]:
        """Its slots are gone, or should be: the stage is everybody's until others come."""
        released = frozenset(self._served_by.get(stage_id, ()))
        for worker_id in released:
            self._drop(self._seats[worker_id])
        return released

    def is_served(self, stage_id: StageId) -> bool:
        """Whether slots of an engine are at the desk for the stage."""
        return stage_id in self._served_by

    def slots_by_stage(self) -> dict[StageId, int]:
        """How many slots work on each stage that has some; those that are to leave do not count."""
        counts = {
            stage_id: sum(not self._seats[worker_id].is_sent_away for worker_id in served_by)
            for stage_id, served_by in self._served_by.items()
        }
        return {stage_id: count for stage_id, count in counts.items() if count}

    def send_away(self, stage_id: StageId, count: int | None = None) -> None:
        """So many slots of the stage, or all of them, end with the rows that run."""
        served_by = (self._seats[worker_id] for worker_id in self._served_by.get(stage_id, ()))
        staying = sorted(
            (seat for seat in served_by if not seat.is_sent_away),
            key=lambda seat: seat.worker.worker_id,
        )
        for seat in staying[:count]:
            seat.is_sent_away = True
            seat.has_mail.set()

    def dismiss(self, stage_id: StageId) -> None:
        """The stage is over: slots that wait for its frames hear of it."""
        for worker_id in self._served_by.get(stage_id, ()):
            self._seats[worker_id].has_mail.set()

    def lacking(self, kinds: Kinds) -> Kinds:
        """Those that no worker has, or all of them when each has some: why the work waits."""
        asked = self._asked(kinds)
        if any(seat.has(asked) for seat in self._seats.values()):
            return ANY
        had = {tool for seat in self._seats.values() for tool in seat.worker.tools}
        return asked - had or asked

    def _asked(self, kinds: Kinds) -> Kinds:
        if self.offered is None or kinds <= self.offered:
            return kinds
        had = {tool for seat in self._seats.values() for tool in seat.worker.tools}
        return kinds & (self.offered | had)

    def take_lost(self, now: Instant, quiet_seconds: float) -> list[Seat]:
        """Workers that have said nothing for so long; they are given a new seat if they return."""
        lost = [
            seat
            for seat in self._seats.values()
            if not seat.is_there(now) and now > plus(seat.heard_at, seconds=quiet_seconds)
        ]
        for seat in lost:
            self._drop(seat)
        return lost

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
        self._drop(self._seats[worker.worker_id])
        return True

    def _drop(self, seat: Seat) -> None:
        worker = seat.worker
        del self._seats[worker.worker_id]
        if worker.serves is None or worker.serves.is_shared:
            return
        served_by = self._served_by[worker.serves.stage_id]
        served_by.discard(worker.worker_id)
        if not served_by:  # the stage is everybody's again
            del self._served_by[worker.serves.stage_id]

    def all(self) -> list[Seat]:
        return list(self._seats.values())


def _is_later(boot: str, other: str) -> bool:
    """Boots of slots are numbers: of two, the higher one is the real one."""
    return boot.isdecimal() and other.isdecimal() and int(boot) > int(other)


def why_nobody(seats: Seats, playbook: Playbook, step: StepName) -> str | None:
    """Why no worker can take the work of a step, whatever is free; None when one can."""
    if not seats.all():
        return "none is connected"
    lacking = sorted(seats.lacking(kinds_needed(playbook, step)))
    if not lacking:
        return None
    return f"no worker has tool {' and '.join(lacking)}"
