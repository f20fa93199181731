"""fold -> decide -> append: the one writer of each execution that it holds.

Wishes (reports, requests, claims) wait in the execution's inbox. One turn takes all that wait,
folds them, decides until nothing follows, and appends everything at once.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from noetl.decider.answers import AssembleFirst, Decided
from noetl.decider.decide import decide
from noetl.decider.view import VISITS_MAX, StageEngines, View
from noetl.domain.events import PlaybookFailed
from noetl.domain.events.values import Failure
from noetl.domain.log import SealedEvent
from noetl.kernel.errors import ExecutionNotFound, NoETLError, PayloadError
from noetl.kernel.errors.advice import advised
from noetl.kernel.ids import ExecutionId
from noetl.ports.clock import Clock
from noetl.ports.event_log import EventLog
from noetl.ports.snapshot_store import SnapshotStore
from noetl.ports.telemetry import NoTelemetry, Telemetry
from noetl.results.store import ResultStore
from noetl.runtime.endings import Ending, Endings, ending_of
from noetl.runtime.gathering import Gathering
from noetl.runtime.group_commit import GroupCommit
from noetl.runtime.handout import LeaseTerms, Promise, give_up_lost_frames, hand_out
from noetl.runtime.loading import Loader
from noetl.runtime.log_lines import about
from noetl.runtime.measures import Measures
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.running import Running
from noetl.runtime.seats import Seats
from noetl.runtime.turn import Turn, TurnFull

_LOG = logging.getLogger(__name__)
WISHES_MAX = 100
"""Wishes in one turn; each adds a handful of events."""

_T = TypeVar("_T")
Wish = Callable[[Turn], _T]
_Waiting = tuple[Wish[Any], "asyncio.Future[Any]"]
Listener = Callable[[ExecutionId, Sequence[SealedEvent]], None]
"""Told of every append once it is durable; must not block."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator stands on."""

    log: EventLog
    results: ResultStore
    playbooks: Playbooks
    clock: Clock
    new_id: Callable[[], str]
    producer: str = "noetl://coordinator"
    processors: int = 2
    engine: StageEngines = "local"
    engine_slots: int = 2
    terms: LeaseTerms = LeaseTerms()
    visits_max: int = VISITS_MAX  # of one step in one execution
    telemetry: Telemetry = NoTelemetry()
    snapshots: SnapshotStore | None = None  # without them, every load folds from the first event


class Coordinator:
    def __init__(self, held: Held) -> None:
        self.held = held
        self.seats = Seats()
        self.endings = Endings()
        self.listeners: list[Listener] = []
        self.running: OrderedDict[ExecutionId, Running] = OrderedDict()
        self.measures = Measures()
        self._commit = GroupCommit(held.log, held.clock, self.measures, held.telemetry)
        self._gathering = Gathering(held.results)
        self._loader = Loader(held.log, held.playbooks, held.producer, held.snapshots)
        self.neglected: dict[ExecutionId, None] = {}  # a turn got lost: somebody has to look again
        self._inboxes: dict[ExecutionId, list[_Waiting]] = {}
        self._poked: set[ExecutionId] = set()
        self._serving: dict[ExecutionId, asyncio.Task[None]] = {}
        self._loading: dict[ExecutionId, asyncio.Task[Running]] = {}

    async def submit(self, execution: ExecutionId, wish: Wish[_T]) -> _T:
        """Grant a wish in the execution's next turn; returns when its events are durable."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._inboxes.setdefault(execution, []).append((wish, future))
        self.poke(execution)
        return await future

    def poke(self, execution: ExecutionId) -> None:
        """Look again, although nobody wishes anything: there may be a slot for its work."""
        self._poked.add(execution)  # whoever serves it now looks once more before it ends
        if execution not in self._serving:
            task = asyncio.create_task(self._serve(execution))
            self._serving[execution] = task
            task.add_done_callback(lambda _: self._served(execution))

    def adopt(self, running: Running) -> None:
        """Take a new execution in; its first wish appends its first event."""
        self.running.setdefault(running.execution_id, running)

    async def drain(self) -> None:
        """Wait until nothing is being decided or written any more."""
        while self._serving:
            await asyncio.wait(list(self._serving.values()))
        await self._commit.drain()

    async def load(self, execution: ExecutionId) -> Running:
        """From memory, or folded from the log; only once, however many ask."""
        known = self.running.get(execution)
        if known is not None:
            return known
        task = self._loading.get(execution)
        if task is None:
            task = self._loading[execution] = asyncio.create_task(self._read(execution))
            task.add_done_callback(lambda _: self._loading.pop(execution))
        return await asyncio.shield(task)

    async def _read(self, execution: ExecutionId) -> Running:
        running = await self._loader.read(execution)
        if not running.is_over:
            self.running[execution] = running
        return running

    async def _serve(self, execution: ExecutionId) -> None:
        inbox = self._inboxes.setdefault(execution, [])
        while inbox or execution in self._poked:
            self._poked.discard(execution)
            wishes, inbox[:] = inbox[:WISHES_MAX], inbox[WISHES_MAX:]
            try:
                running = await self.load(execution)
                await self._take_turn(running, wishes)
            except NoETLError as error:
                self._lose(execution, wishes, error)
            except BaseException as error:  # our own bug: nobody may wait for ever
                self.running.pop(execution, None)
                _fail([*wishes, *inbox], error)
                inbox.clear()
                raise

    def _lose(self, execution: ExecutionId, wishes: list[_Waiting], error: NoETLError) -> None:
        """A turn could not be appended. What it folded is ahead of the log and is thrown away."""
        self.running.pop(execution, None)
        self.seats.starving.pop(execution, None)
        self.measures.tell("turn_lost", 1)
        _LOG.warning("a turn was lost: %s", error.code, extra=about(execution_id=execution))
        if error.retryable or (wishes and not isinstance(error, ExecutionNotFound)):
            self.neglected[execution] = None
        else:
            self.neglected.pop(execution, None)
        _fail(wishes, error)
        self.feed()

    async def _take_turn(self, running: Running, wishes: list[_Waiting]) -> None:
        """Wishes that do not fit any more go back to the head of the inbox."""
        turn = Turn(running, self.held.clock.now(), self.held.new_id)
        began = self.held.clock.monotonic()
        try:
            answers = _granted_all(wishes, turn)
            self._inboxes[running.execution_id][:0] = wishes[len(answers) :]
            del wishes[len(answers) :]
            give_up_lost_frames(turn)
            is_complete = await self._decide(turn)
            promises = hand_out(turn, self.seats, self.held.terms)
            if turn.events:
                await self._commit.append(turn.append())
        except BaseException:
            turn.undo()
            raise
        self.measures.tell("turn_seconds", self.held.clock.monotonic() - began)
        self._tell(running, turn, promises)
        for (_, future), answer in zip(wishes, answers, strict=True):
            _answer(future, answer)
        if not is_complete:
            self._poked.add(running.execution_id)

    async def _decide(self, turn: Turn) -> bool:
        """Add decisions until nothing follows (True), or until these must be appended (False)."""
        running = turn.running
        view = View(
            plan=running.plan,
            state=running.state,
            processors=self.held.processors,
            engine=self.held.engine,
            engine_slots=self.held.engine_slots,
            attempts_max=self.held.terms.attempts_max,
            visits_max=self.held.visits_max,
        )
        while not turn.is_full:
            answer = decide(view)
            if isinstance(answer, list):
                if not answer:
                    return True
                turn.decide(answer)
                continue
            if isinstance(answer, AssembleFirst) and turn.events:
                # A dataset has one name for ever: what it lists must be durable before it is, or
                # whoever comes after a crash would have others to list under the same name.
                return False
            try:
                view = await self._gathering.complete(view, answer, running.source.scope)
            except PayloadError as error:
                turn.decide([_unreadable(error)])
        return False

    def _tell(self, running: Running, turn: Turn, promises: list[Promise]) -> None:
        """The turn is durable: whoever waits for something in it may know."""
        running.recorded_version = running.head.version
        self.neglected.pop(running.execution_id, None)
        for promise in promises:
            promise.seat.deliver(promise.work)
        if turn.events:
            self.running[running.execution_id] = running  # whoever listens may look at it
            running.forget_ended_work()
            for listener in self.listeners:
                listener(running.execution_id, turn.events)
        if running.is_over:
            self.running.pop(running.execution_id, None)
            self.endings.over(running.execution_id, ending_of(running.state))
        elif running.head.version > 0:  # one that had ended may have been retried
            self.running[running.execution_id] = running
        else:  # its first event was refused
            self.running.pop(running.execution_id, None)
        self.feed()

    def feed(self) -> None:
        """A slot came free in one execution's turn: another one may have waited for it."""
        hungry = self.seats.hungry(self.held.clock.now()) if self.seats.starving else None
        if hungry is not None:
            self.poke(hungry)

    def _served(self, execution: ExecutionId) -> None:
        del self._serving[execution]
        if self._inboxes[execution] or execution in self._poked:  # since the last look
            self.poke(execution)
        else:
            del self._inboxes[execution]

    async def ending(self, execution: ExecutionId, wait_seconds: float) -> Ending | None:
        """How the execution ended, or None when it has not within the time."""
        known = self.endings.known(execution)
        if known is not None:
            return known
        running = await self.load(execution)
        if running.is_over and running.is_recorded:
            return ending_of(running.state)
        return await self.endings.wait(execution, wait_seconds)


def _fail(wishes: list[_Waiting], error: BaseException) -> None:
    for _, future in wishes:
        if not future.done():
            future.set_exception(error)


def _granted_all(wishes: list[_Waiting], turn: Turn) -> list[Any]:
    """The answers to as many wishes as the turn has room for."""
    answers: list[Any] = []
    for wish, _ in wishes:
        if turn.is_full:
            break
        try:
            answers.append(_granted(wish, turn))
        except TurnFull:
            break
    return answers


def _granted(wish: Wish[Any], turn: Turn) -> Any:
    """A refused wish changes nothing; the others of the turn go on."""
    try:
        return wish(turn)
    except NoETLError as refusal:
        return refusal


def _answer(future: "asyncio.Future[Any]", answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, NoETLError):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _unreadable(error: PayloadError) -> Decided:
    failure = Failure(
        kind="missing_reference", message=f"a result cannot be read: {advised(error)}"
    )
    return Decided(event=PlaybookFailed(error=failure))
