"""SQLite answers every question as the memory log does, whatever was asked before."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.domain.events import CommandIssued, StepEntered
from noetl.domain.events.envelope import Draft
from noetl.domain.log import (
    Append,
    Appended,
    AppendOutcome,
    AtEvent,
    AtPosition,
    AtTime,
    Cutoff,
    StreamHead,
)
from noetl.kernel.ids import CommandId, EventId, ExecutionId, StepName
from noetl.kernel.instant import Instant, from_millis
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.event_log import EventLog
from noetl.testing.histories import START_MILLIS, History, execution_ids, source_of
from noetl.wire.codec import seal

EXECUTIONS = execution_ids(2)
OTHER_SCOPE = Scope("acme", "research")
STEP = StepName("load")

executions = st.sampled_from(EXECUTIONS)
kinds = st.lists(st.sampled_from(["step", "keyed", "command"]), min_size=1, max_size=3, unique=True)
few_keys = st.sampled_from(["k1", "k2", "k3", "k4"])
positions = st.integers(0, 40)
limits = st.integers(1, 5)


class EventLogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        self.history = History(EXECUTIONS[0])  # ids are never used twice
        self.seconds = 0
        self.sent: list[Append] = []
        self.memory: EventLog = MemoryEventLog(self.now)
        self.file = SqliteFile(Path(self.folder.name) / "log.db")

    def now(self) -> Instant:
        return from_millis(START_MILLIS + self.seconds * 1000)

    @initialize()
    def open(self) -> None:
        self.sqlite: EventLog = self.runner.run(SqliteEventLog.open(self.file, self.now))

    def teardown(self) -> None:
        self.runner.run(self.file.close())
        self.runner.close()
        self.folder.cleanup()

    @rule(execution=executions, kinds=kinds, key=few_keys, seconds=st.integers(0, 5))
    def append(self, execution: ExecutionId, kinds: list[str], key: str, seconds: int) -> None:
        self.seconds = seconds  # the clock may step back; ingest time must not
        self.send([self.append_of(execution, kinds, key, self.head(execution))])

    @rule(execution=executions, kinds=kinds, key=few_keys, version=st.integers(0, 12))
    def append_at_some_version(
        self, execution: ExecutionId, kinds: list[str], key: str, version: int
    ) -> None:
        head = self.head(execution)
        guess = StreamHead(version, head.last_event_id if version else None)
        if version != head.version:
            self.send([self.append_of(execution, kinds, key, guess)])

    @rule(execution=executions)
    def append_a_fork(self, execution: ExecutionId) -> None:
        head = self.head(execution)
        fork = StreamHead(head.version, EventId("1"))
        self.send([self.append_of(execution, ["step"], "", fork)])

    @rule(execution=executions)
    def append_for_another_tenant(self, execution: ExecutionId) -> None:
        head = self.head(execution)
        if head.version:
            self.send([self.append_of(execution, ["step"], "", head, OTHER_SCOPE)])

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        self.send([data.draw(st.sampled_from(self.sent))])

    @rule(key=few_keys, kinds=kinds)
    def append_a_group(self, key: str, kinds: list[str]) -> None:
        """The second follows the first, the third is too late, the fourth is of another stream."""
        one, other = EXECUTIONS
        first = self.append_of(one, kinds, key, self.head(one))
        last = first.events[-1].envelope
        second = self.append_of(one, ["step"], "", StreamHead(last.stream_version, last.event_id))
        third = self.append_of(one, ["step"], "", self.head(one))
        fourth = self.append_of(other, kinds, key, self.head(other))
        self.send([first, second, third, fourth])

    @rule(execution=executions, after=st.integers(0, 15), limit=limits)
    def read(self, execution: ExecutionId, after: int, limit: int) -> None:
        self.both("read", execution, after_version=after, limit=limit)

    @rule(after=positions, limit=limits)
    def tail(self, after: int, limit: int) -> None:
        self.both("tail", after_position=after, limit=limit)

    @rule(execution=executions, position=positions, seconds=st.integers(-1, 6))
    def version_at(self, execution: ExecutionId, position: int, seconds: int) -> None:
        time = from_millis(START_MILLIS + seconds * 1000)
        cutoffs: list[Cutoff] = [AtPosition(position), AtTime(time), AtEvent(EventId("1"))]
        cutoffs += [
            AtEvent(sealed.envelope.event_id) for sent in self.sent[-2:] for sealed in sent.events
        ]
        for cutoff in cutoffs:
            self.both("version_at", execution, cutoff)

    @invariant()
    def the_logs_are_the_same(self) -> None:
        if not hasattr(self, "sqlite"):
            return
        rows = self.both("tail")
        assert [row.position for row in rows] == list(range(1, len(rows) + 1))
        for execution in EXECUTIONS:
            stream = self.both("read", execution)
            assert [row.stream_version for row in stream] == list(range(1, len(stream) + 1))
            times = [row.ingest_time for row in stream]
            assert times == sorted(times)
            self.both("head", execution)
            self.both("scope_of", execution)

    def send(self, group: list[Append]) -> None:
        outcomes: Sequence[AppendOutcome] = self.both("append", group)
        for append, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Appended) and not outcome.duplicate:
                self.sent.append(append)

    def both(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Ask both logs and compare their answers; an error is its type and its words."""
        answer = self.runner.run(getattr(self.memory, method)(*arguments, **named))
        other = self.runner.run(getattr(self.sqlite, method)(*arguments, **named))
        assert _comparable(answer) == _comparable(other)
        return answer

    def head(self, execution: ExecutionId) -> StreamHead:
        head: StreamHead = self.both("head", execution)
        return head

    def append_of(
        self,
        execution: ExecutionId,
        kinds: list[str],
        key: str,
        head: StreamHead,
        scope: Scope = DEFAULT_SCOPE,
    ) -> Append:
        drafts = [self.draft(kind, key) for kind in kinds]
        sealed = seal(drafts, head, source_of(execution, scope))
        return Append(scope, execution, head.version, sealed)

    def draft(self, kind: str, key: str) -> Draft:
        if kind == "command":
            issued = CommandIssued(step=STEP, tool="noop")
            return self.history.draft(issued, command_id=CommandId(f"command-{key}"))
        idempotency_key = key if kind == "keyed" else None
        return self.history.draft(StepEntered(step=STEP), idempotency_key=idempotency_key)


def _comparable(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_comparable(each) for each in answer]
    return (type(answer), str(answer)) if isinstance(answer, Exception) else answer


TestEventLogModel = EventLogModel.TestCase
TestEventLogModel.settings = settings(max_examples=40, stateful_step_count=25)
