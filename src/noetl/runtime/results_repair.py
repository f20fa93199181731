"""Is everything that the log names still there, and what can bring it back byte for byte.

Healthy objects are read and never written. What is lost is looked for in other copies, then made
again from the log, then by running what made it; the digest in the log decides.
"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.errors import ExecutionNotFound, NoETLError
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import EventLog
from noetl.results.store import ResultStore
from noetl.runtime.results_repair_copies import Found, Source
from noetl.runtime.results_repair_objects import (
    Named,
    Verdict,
    examine,
    objects_named_by,
    objects_named_within,
    put_back,
)
from noetl.wire.codec import open_stored

FINDINGS_MAX = 1_000
SEEN_MAX = 100_000
"""Objects of an execution that are remembered as read. Past it one may be read again."""

LOST_MAX = 10_000
"""Lost objects of an execution that a second look is taken at."""

NO_COPY = "nobody has another copy, and it does not follow from the log"
FOREIGN = "it belongs to another tenant or organization, and is not looked at"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One object that is not as the log says, and what became of it."""

    execution_id: ExecutionId
    event_id: EventId
    event_type: str
    uri: str
    verdict: Verdict
    sha256: str
    repaired: bool = False
    source: str | None = None  # where the bytes came from
    cannot: str | None = None  # why they could not be brought back


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    executions: int
    objects: int
    bytes: int
    verdicts: dict[str, int]
    repaired: int
    cannot: int
    is_sound: bool  # everything is whole, now
    findings: tuple[Finding, ...]
    findings_omitted: int


class _Lost(NamedTuple):
    named: Named
    verdict: Verdict


class _Tally:
    def __init__(self) -> None:
        self.executions = self.objects = self.bytes = self.repaired = self.cannot = self.found = 0
        self.verdicts: dict[str, int] = {}
        self.findings: list[Finding] = []

    def add(self, finding: Finding) -> None:
        self.found += 1
        self.repaired += finding.repaired
        self.cannot += finding.cannot is not None
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)

    def verification(self) -> Verification:
        return Verification(
            executions=self.executions,
            objects=self.objects,
            bytes=self.bytes,
            verdicts=self.verdicts,
            repaired=self.repaired,
            cannot=self.cannot,
            is_sound=self.found == self.repaired,
            findings=tuple(self.findings),
            findings_omitted=self.found - len(self.findings),
        )


class ResultRepairs:
    def __init__(self, log: EventLog, results: ResultStore, sources: Sequence[Source]) -> None:
        """Sources in the order in which they are asked."""
        self._log = log
        self._results = results
        self._sources = sources

    async def verify(
        self, scope: Scope, executions: Sequence[ExecutionId] | None, *, repair: bool = False
    ) -> Verification:
        """Without a list all executions of the scope. Raises ExecutionNotFound."""
        tally = _Tally()
        if executions is None:
            async for execution in self._all(scope):
                await self._execution(execution, repair, tally)
            return tally.verification()
        for execution in executions:  # before anything is changed
            if await self._log.scope_of(execution) != scope:
                raise ExecutionNotFound(execution)
        for execution in executions:
            await self._execution(execution, repair, tally)
        return tally.verification()

    async def named(self, scope: Scope, execution: ExecutionId) -> AsyncIterator[Named]:
        """What the events of an execution name, and what is named inside of that, each once.
        Raises ExecutionNotFound."""
        if await self._log.scope_of(execution) != scope:
            raise ExecutionNotFound(execution)
        async for named in self._named(execution, set()):
            yield named

    async def _all(self, scope: Scope) -> AsyncIterator[ExecutionId]:
        """In the order in which they began, as the log has it."""
        position = 0
        while page := await self._log.tail(after_position=position):
            for stored in page:
                if stored.stream_version == 1 and open_stored(stored).envelope.scope == scope:
                    yield stored.execution_id
            position = page[-1].position

    async def _named(self, execution: ExecutionId, seen: set[str]) -> AsyncIterator[Named]:
        async for recorded in self._events(execution):
            for named in objects_named_by(recorded, self._results.placement):
                async for each in self._with_nested(named, seen):
                    yield each

    async def _with_nested(self, named: Named, seen: set[str]) -> AsyncIterator[Named]:
        """The outer one first: it is read when whoever asks has looked at it, and is whole."""
        pending = deque([named])
        while pending:
            each = pending.popleft()
            if each.reference.uri in seen:
                continue
            if len(seen) < SEEN_MAX:
                seen.add(each.reference.uri)
            yield each
            pending += await objects_named_within(self._results, each)

    async def _events(self, execution: ExecutionId) -> AsyncIterator[RecordedEvent]:
        version = 0
        while page := await self._log.read(execution, after_version=version):
            for stored in page:
                yield open_stored(stored)
            version = page[-1].stream_version

    async def _execution(self, execution: ExecutionId, repair: bool, tally: _Tally) -> None:
        """In the order of the events: what a later one was made of is whole again before it."""
        tally.executions += 1
        again: list[tuple[_Lost, Finding]] = []
        repaired = tally.repaired
        seen: set[str] = set()
        async for named in self._named(execution, seen):
            lost = await self._examined(named, tally)
            if lost is None:
                continue
            finding = await self._repaired(lost) if repair else _finding(lost)
            if finding.cannot is None or len(again) >= LOST_MAX:
                tally.add(finding)
            else:
                again.append((lost, finding))
        for lost, finding in again:
            # What came back later may be what this one is made of.
            has_news = tally.repaired > repaired
            tally.add(await self._repaired(lost) if has_news else finding)
            if has_news:
                await self._inside(lost.named, seen, tally)

    async def _inside(self, outer: Named, seen: set[str], tally: _Tally) -> None:
        """What it names could not be known before it came back."""
        for nested in await objects_named_within(self._results, outer):
            async for named in self._with_nested(nested, seen):
                lost = await self._examined(named, tally)
                if lost is not None:
                    tally.add(await self._repaired(lost))

    async def _examined(self, named: Named, tally: _Tally) -> _Lost | None:
        """None: it is whole."""
        verdict, byte_length = await examine(self._results.objects, named)
        tally.objects += 1
        tally.bytes += byte_length
        tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
        return None if verdict == "ok" else _Lost(named, verdict)

    async def _repaired(self, lost: _Lost) -> Finding:
        if lost.named.key is None:
            return _finding(lost, cannot=FOREIGN)
        reasons: list[str] = []
        for source in self._sources:
            async with aclosing(source(lost.named)) as offers:
                async for found in offers:
                    reason = await self._why_not(lost, found)
                    if reason is None:
                        return _finding(lost, repaired=True, source=found.source)
                    reasons.append(reason)
        return _finding(lost, cannot="; ".join(dict.fromkeys(reasons)) or NO_COPY)

    async def _why_not(self, lost: _Lost, found: Found) -> str | None:
        """None: it is whole again, read back from the store."""
        if found.data is None:
            return found.reason or NO_COPY
        try:
            await put_back(self._results.objects, lost.named, lost.verdict, found.data)
        except NoETLError as error:  # other bytes, or that copy is away: ask the next one
            return f"{found.source}: {error}"
        verdict = (await examine(self._results.objects, lost.named)).verdict
        return None if verdict == "ok" else f"{found.source}: it was written, and is {verdict}"


def _finding(
    lost: _Lost, *, repaired: bool = False, source: str | None = None, cannot: str | None = None
) -> Finding:
    envelope = lost.named.recorded.envelope
    return Finding(
        execution_id=envelope.execution_id,
        event_id=envelope.event_id,
        event_type=envelope.event_type,
        uri=lost.named.reference.uri,
        verdict=lost.verdict,
        sha256=lost.named.reference.sha256 or "",
        repaired=repaired,
        source=source,
        cannot=cannot,
    )
