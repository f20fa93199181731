"""Objects that nobody can ask for any more: listed first, deleted when told to.

An object is an orphan when its key is exactly one that we write, its execution has neither events
nor an archive, and its id was made longer ago than the grace. What a completed execution names
neither in an event nor inside what these name is superseded: left alone unless it is asked for.
Payloads and playbooks go by their digests, which any execution may name; they are not looked at.
"""

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal

import msgspec

from noetl.domain.events import (
    ExecutionCancelled,
    ExecutionRetried,
    PlaybookCompleted,
    PlaybookFailed,
)
from noetl.domain.log import StoredEvent
from noetl.domain.naming.placement import (
    CellPlacement,
    PhysicalKey,
    execution_prefix,
    parse_physical_key,
    shard_of,
)
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.kernel.errors import CollectionRefused, NameInvalid, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, seconds_between
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import minted_at
from noetl.ports.clock import Clock
from noetl.ports.event_log import EventLog
from noetl.ports.object_store import ObjectFacts
from noetl.ports.projection_store import ProjectionStore
from noetl.results.store import ResultStore
from noetl.runtime.log_cursor import load_cursor
from noetl.runtime.projector import CONSUMER
from noetl.runtime.results_gc_nested import NAMES_MAX, Names, NestedNames
from noetl.wire.codec import open_stored

GRACE_SECONDS = 24 * 60 * 60.0
CANDIDATES_TOLD_MAX = 1_000

Verdict = Literal["foreign", "live", "archived", "young", "superseded", "orphan"]

_NAME = re.compile(rb'noetl://[^"\\\s]+')
_ENDS = (PlaybookCompleted, PlaybookFailed, ExecutionCancelled, ExecutionRetried)


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What may hold garbage, and who says what is alive."""

    log: EventLog
    projections: ProjectionStore
    results: ResultStore
    clock: Clock


class CollectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`superseded` asks for those too; without it they are only counted and listed."""

    dry_run: bool = True
    grace_seconds: float = GRACE_SECONDS
    superseded: bool = False


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an execution when its objects are judged."""

    minted: Instant
    version: int  # of its stream; 0: it has no events
    is_archived: bool = False
    completed_at: Instant | None = None  # None: it runs, or may be retried
    names: Names | None = None  # in its events; None: too many, or not all can be known
    has_nested: bool = False  # names inside other objects are among them


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    execution_id: ExecutionId
    byte_length: int
    verdict: Verdict
    deleted: bool = False


class CollectionReport(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool
    grace_seconds: float
    objects: dict[str, int]  # by verdict
    bytes: dict[str, int]
    deleted: int
    deleted_bytes: int
    live_candidates: int  # found alive when looked at once more: never deleted
    candidates: tuple[Candidate, ...]
    candidates_omitted: int


def judge(
    name: ResultName | DatasetName, known: Known, now: Instant, grace_seconds: float
) -> Verdict:
    """Pure. Whatever is not sure counts as alive."""
    if known.version > 0:
        return _judge_named(name, known, now, grace_seconds)
    if known.is_archived:
        return "archived"
    return "orphan" if _is_past(known.minted, now, grace_seconds) else "young"


def _judge_named(
    name: ResultName | DatasetName, known: Known, now: Instant, grace_seconds: float
) -> Verdict:
    """A run that failed or was cancelled may be retried, and its journals know more names."""
    if known.completed_at is None or known.names is None or name in known.names:
        return "live"
    return "superseded" if _is_past(known.completed_at, now, grace_seconds) else "live"


def _is_past(moment: Instant, now: Instant, grace_seconds: float) -> bool:
    return seconds_between(moment, now) > grace_seconds


class _Tally:
    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.deleted = self.deleted_bytes = self.live_candidates = self.found = 0
        self.candidates: list[Candidate] = []

    def add(self, verdict: Verdict, byte_length: int) -> None:
        self.objects[verdict] = self.objects.get(verdict, 0) + 1
        self.bytes[verdict] = self.bytes.get(verdict, 0) + byte_length

    def tell(self, candidate: Candidate) -> None:
        """Deleted or not, it is told, as long as there is room."""
        self.found += 1
        if candidate.deleted:
            self.deleted += 1
            self.deleted_bytes += candidate.byte_length
        if len(self.candidates) < CANDIDATES_TOLD_MAX:
            self.candidates.append(candidate)


class ResultCollector:
    """Of one cell and one scope: what others keep in the same store is foreign."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    async def collect(self, scope: Scope, request: CollectionRequest) -> CollectionReport:
        """Raises CollectionRefused while it cannot be known what is alive."""
        await self._check(request)
        clock, tally = self._collected.clock, _Tally()
        last: tuple[ExecutionId, Known] | None = None  # keys of one execution stand together
        async for facts in self._listed(scope):
            key = parse_physical_key(facts.key)
            if key is None or not self._is_ours(key, scope):
                tally.add("foreign", facts.byte_length)
                continue
            execution = key.name.execution_id
            if last is None or last[0] != execution:
                last = execution, await self._known(execution)
            verdict = judge(key.name, last[1], clock.now(), request.grace_seconds)
            if verdict == "superseded" and not last[1].has_nested:
                last = execution, await self._with_nested(scope, execution, last[1])
                verdict = judge(key.name, last[1], clock.now(), request.grace_seconds)
            tally.add(verdict, facts.byte_length)
            if verdict in ("orphan", "superseded"):
                candidate = Candidate(
                    key=facts.key,
                    execution_id=execution,
                    byte_length=facts.byte_length,
                    verdict=verdict,
                )
                await self._treat(candidate, last[1], request, tally)
        return _report(request, tally)

    async def _check(self, request: CollectionRequest) -> None:
        """Read models that lag mean a log that is not what it seems: live may look dead."""
        if request.grace_seconds < 0:
            raise RequestInvalid(f"a grace of {request.grace_seconds:g} s is none; use 0 or more")
        log = self._collected.log
        cursor = await load_cursor(log, self._collected.projections, CONSUMER)
        for oldest in await log.tail(after_position=cursor.position, limit=1):
            age = seconds_between(oldest.ingest_time, self._collected.clock.now())
            if age > request.grace_seconds:
                raise CollectionRefused(
                    f"read models are {age:.0f} s behind the log, more than the grace of"
                    f" {request.grace_seconds:g} s; let a server catch up (noetl dev)"
                )
        if not request.dry_run and not await log.tail(limit=1):
            raise CollectionRefused(
                "the log has no event at all, so everything would look dead; check NOETL_LOG_URL"
                " and NOETL_HOME"
            )

    async def _listed(self, scope: Scope) -> AsyncIterator[ObjectFacts]:
        """Page by page, shard after shard; a page is read before anything of it is deleted."""
        prefix, after = cell_prefix(scope, self._collected.results.placement), ""
        while page := await self._collected.results.objects.list_objects(prefix, after=after):
            for facts in page:
                yield facts
            after = page[-1].key

    def _is_ours(self, key: PhysicalKey, scope: Scope) -> bool:
        placement, name = self._collected.results.placement, key.name
        shard = shard_of(name.tenant, name.project, name.execution_id, placement.shard_count)
        here = (placement.env, placement.region, placement.cell, shard)
        return name.scope == scope and (key.env, key.region, key.cell, key.shard) == here

    async def _known(self, execution: ExecutionId) -> Known:
        version = (await self._collected.log.head(execution)).version
        known = Known(minted=minted_at(execution), version=version)
        if version == 0:
            archived = await self._collected.log.is_archived(execution)
            return msgspec.structs.replace(known, is_archived=archived)
        completed_at: Instant | None = None
        names: set[ResultName | DatasetName] = set()
        async for stored in self._events(execution, version):
            if len(names) < NAMES_MAX:
                names |= names_in(stored.canonical)
            event = open_stored(stored).event
            if isinstance(event, _ENDS):
                is_completed = isinstance(event, PlaybookCompleted)
                completed_at = stored.ingest_time if is_completed else None
        named = frozenset(names) if len(names) < NAMES_MAX else None
        return msgspec.structs.replace(known, completed_at=completed_at, names=named)

    async def _with_nested(self, scope: Scope, execution: ExecutionId, known: Known) -> Known:
        """Only asked of an execution that seems to have left something behind."""
        nested = NestedNames(self._collected.results, scope, known.names or frozenset())
        async for stored in self._events(execution, known.version):
            await nested.add(open_stored(stored))
        names = await nested.all_of(execution)
        return msgspec.structs.replace(known, names=names, has_nested=True)

    async def _events(self, execution: ExecutionId, version: int) -> AsyncIterator[StoredEvent]:
        log, after = self._collected.log, 0
        while after < version and (page := await log.read(execution, after_version=after)):
            for stored in page:
                yield stored
            after = page[-1].stream_version

    async def _treat(
        self, candidate: Candidate, known: Known, request: CollectionRequest, tally: _Tally
    ) -> None:
        """Looked at once more, object by object: between the list and here time has passed."""
        execution = candidate.execution_id
        log = self._collected.log
        is_same = (await log.head(execution)).version == known.version
        is_archived = known.version == 0 and await log.is_archived(execution)
        if not is_same or is_archived:
            tally.live_candidates += 1
            return
        is_asked_for = candidate.verdict == "orphan" or request.superseded
        if request.dry_run or not is_asked_for:
            tally.tell(candidate)
            return
        await self._collected.results.objects.delete(candidate.key)
        tally.tell(msgspec.structs.replace(candidate, deleted=True))


def cell_prefix(scope: Scope, placement: CellPlacement) -> str:
    """What all keys of a cell begin with: the part before the shard says nothing of a scope."""
    return execution_prefix(scope, ExecutionId("0"), placement).partition("shard=")[0]


def names_in(canonical: bytes) -> set[ResultName | DatasetName]:
    """Every name of a result in an event, wherever it stands."""
    found: set[ResultName | DatasetName] = set()
    for uri in _NAME.findall(canonical):
        with suppress(NameInvalid, UnicodeDecodeError):
            found.add(parse_results(uri.decode()))
    return found


def _report(request: CollectionRequest, tally: _Tally) -> CollectionReport:
    return CollectionReport(
        dry_run=request.dry_run,
        grace_seconds=request.grace_seconds,
        objects=tally.objects,
        bytes=tally.bytes,
        deleted=tally.deleted,
        deleted_bytes=tally.deleted_bytes,
        live_candidates=tally.live_candidates,
        candidates=tuple(tally.candidates),
        candidates_omitted=tally.found - len(tally.candidates),
    )
