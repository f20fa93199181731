"""tail -> is what events name there? -> fill it in. Beside the path of events, never in it.

Producers store before they report, so there is little to do: a store that lost an object, or a
producer that could not store it, is made good while some node still has the bytes. At least once:
a page that was checked and not noted is checked again. Runs once, where the log is held.
"""

from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import ResultReference
from noetl.domain.log import StoredEvent
from noetl.domain.naming.result_name import is_result_uri
from noetl.domain.projection import QUERY_RECORDS_MAX, ProjectionQuery, ProjectionRecord
from noetl.domain.read_models import NO_TENANT, SCOPES
from noetl.kernel import canonical_json
from noetl.kernel.errors import PayloadError
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import PAGE_EVENTS_MAX, EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.results.filling import DAMAGED, MALFORMED, MISSING, fill
from noetl.results.store import ResultStore
from noetl.results.within import named_within
from noetl.runtime.log_cursor import load_cursor
from noetl.runtime.payload_verification import payloads_named_by
from noetl.wire.codec import open_stored

CONSUMER = "result_materializer"

UNFILLED = "unfilled_result"
"""The read model of results that the store lacks or has damaged, and of those it lacked once."""

LACKING = (MISSING, DAMAGED)

CHECKED_MAX = 10_000
"""Names remembered as there: several events name one result."""

_SCHEME = b"noetl://"


class UnfilledResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that its event names. `outcome` is how the last attempt ended."""

    execution_id: ExecutionId
    event_id: EventId
    outcome: str
    reference: ResultReference


class Materializer:
    def __init__(self, log: EventLog, projections: ProjectionStore, results: ResultStore) -> None:
        self._log = log
        self._projections = projections
        self._results = results
        self._checked: OrderedDict[str, None] = OrderedDict()

    async def advance(self, limit: int = PAGE_EVENTS_MAX) -> int:
        """Check the next page of the log; returns how many events it had, 0 at the end."""
        cursor = await load_cursor(self._log, self._projections, CONSUMER)
        page = await self._log.tail(after_position=cursor.position, limit=limit)
        records: dict[str, ProjectionRecord] = {}
        for stored in page:
            if _SCHEME in stored.canonical:  # most events name nothing, and are not opened
                async for record in self._looked_at(stored):
                    records[record.projection_id] = record
        if page:
            cursor = msgspec.structs.replace(cursor, position=page[-1].position)
            await self._projections.save([*records.values()], cursor)
        return len(page)

    async def retry(self) -> int:
        """Try again what was missing: a replica or a node may be back. Returns what was filled."""
        filled = 0
        for scope in await self._scopes():
            for record in await self._unfilled(scope):
                known = msgspec.convert(record.state, UnfilledResult)
                outcome = await self._fill(scope, known.reference)
                if outcome == known.outcome:
                    continue
                again = msgspec.structs.replace(known, outcome=outcome)
                records = [_noted(_newer(record, known.reference), again)]
                if outcome not in (*LACKING, MALFORMED):
                    filled += 1
                    records += await self._inside(scope, record, known)
                await self._projections.save(records)
        return filled

    async def unfilled(self, scope: Scope) -> list[UnfilledResult]:
        """What the store of this scope lacks, as far as the log has been checked."""
        records = await self._unfilled(scope)
        return [msgspec.convert(record.state, UnfilledResult) for record in records]

    async def _looked_at(self, stored: StoredEvent) -> AsyncIterator[ProjectionRecord]:
        recorded = open_stored(stored)
        for reference in payloads_named_by(recorded):
            async for lacking, outcome in self._filled(recorded.envelope.scope, reference):
                yield _record(recorded, stored, lacking, outcome)

    async def _filled(
        self, scope: Scope, reference: ResultReference
    ) -> AsyncIterator[tuple[ResultReference, str]]:
        """It, and then what is named inside of it; those come that the store lacks."""
        pending = deque([reference])
        while pending:
            each = pending.popleft()
            if each.uri in self._checked or not is_result_uri(each.uri):
                continue
            outcome = await self._fill(scope, each)
            if outcome in LACKING:
                yield each, outcome
                continue
            self._remember(each.uri)
            if outcome == MALFORMED:
                continue
            with suppress(PayloadError):  # damaged or unreadable: for verification to tell
                pending += await named_within(self._results, scope, each)

    async def _inside(
        self, scope: Scope, record: ProjectionRecord, known: UnfilledResult
    ) -> list[ProjectionRecord]:
        """What the store lacks of that which a result names that is back."""
        found: list[ProjectionRecord] = []
        with suppress(PayloadError):
            for reference in await named_within(self._results, scope, known.reference):
                async for lacking, outcome in self._filled(scope, reference):
                    inner = msgspec.structs.replace(known, reference=lacking, outcome=outcome)
                    found.append(_noted(_newer(record, lacking), inner))
        return found

    async def _fill(self, scope: Scope, reference: ResultReference) -> str:
        outcome = await fill(self._results, scope, reference)
        self._results.counts.materialized[outcome] += 1
        return outcome

    def _remember(self, uri: str) -> None:
        self._checked[uri] = None
        if len(self._checked) > CHECKED_MAX:
            self._checked.popitem(last=False)

    async def _scopes(self) -> list[Scope]:
        query = ProjectionQuery(scope=NO_TENANT, projection_type=SCOPES, limit=QUERY_RECORDS_MAX)
        records = await self._projections.query(query)
        return [Scope(**record.state) for record in records]

    async def _unfilled(self, scope: Scope) -> list[ProjectionRecord]:
        found: list[ProjectionRecord] = []
        for outcome in (MISSING, DAMAGED):
            after = ""
            while page := await self._projections.query(
                ProjectionQuery(
                    scope=scope,
                    projection_type=UNFILLED,
                    where={"outcome": outcome},
                    after_id=after,
                    limit=QUERY_RECORDS_MAX,
                )
            ):
                found += page
                after = page[-1].projection_id
        return found


def _record(
    recorded: RecordedEvent, stored: StoredEvent, reference: ResultReference, outcome: str
) -> ProjectionRecord:
    envelope = recorded.envelope
    unfilled = UnfilledResult(
        execution_id=envelope.execution_id,
        event_id=envelope.event_id,
        outcome=outcome,
        reference=reference,
    )
    first = ProjectionRecord(
        scope=envelope.scope,
        projection_type=UNFILLED,
        projection_id=_id_of(envelope.execution_id, reference),
        execution_id=envelope.execution_id,
        version=stored.position,
        position=stored.position,
        source_event_id=envelope.event_id,
        canonical=b"",
        checksum="",
    )
    return _noted(first, unfilled)


def _newer(record: ProjectionRecord, reference: ResultReference) -> ProjectionRecord:
    """Of this result, which need not be the one that the record was about."""
    projection_id = _id_of(record.execution_id, reference)
    return msgspec.structs.replace(record, projection_id=projection_id, version=record.version + 1)


def _id_of(execution: ExecutionId, reference: ResultReference) -> str:
    return f"{execution}/{canonical_json.sha256_hex(reference.uri.encode())}"


def _noted(record: ProjectionRecord, unfilled: UnfilledResult) -> ProjectionRecord:
    canonical = canonical_json.encode_recorded(unfilled)
    return msgspec.structs.replace(
        record, canonical=canonical, checksum=canonical_json.sha256_hex(canonical)
    )
