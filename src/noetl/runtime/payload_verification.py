"""Are the payloads that a history names still there, and still the same? Facts, never bodies."""

from collections import deque
from collections.abc import AsyncIterator, Iterator

import msgspec

from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.execution.accumulator import extend
from noetl.domain.execution.rows import Chain
from noetl.domain.naming.locator import parse_resource
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri
from noetl.kernel import canonical_json
from noetl.kernel.errors import NameInvalid, PayloadError
from noetl.kernel.ids import EventId
from noetl.kernel.scope import Scope
from noetl.pipeline.payloads import as_reference
from noetl.results.store import ResultStore
from noetl.results.tiers import media_type_of
from noetl.results.within import named_within

FACTS_MAX = 1_000
"""Facts that a report holds; its summary always covers every occurrence."""

DIGESTS_REMEMBERED_MAX = 100_000
"""Distinct payloads remembered as checked. Past it one may be read and counted again,
never skipped."""


class PayloadFact(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one payload that one event names."""

    event_id: EventId
    uri: str
    sha256: str
    media_type: str
    resolved: bool
    byte_length: int | None = None
    row_count: int | None = None
    error: str | None = None  # the code of the error, e.g. payload_missing


class PayloadSummary(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    resolved: int
    unresolved: int
    unique_refs: int
    all_resolved: bool
    checksum: str  # over every fact, in the order of the events


class PayloadVerification(msgspec.Struct, frozen=True, kw_only=True):
    summary: PayloadSummary
    facts: tuple[PayloadFact, ...]
    facts_omitted: int


class _Verdict(msgspec.Struct, frozen=True):
    byte_length: int | None
    error: str | None


class _Facts:
    """What is known so far: every fact counts, and the first ones are kept."""

    def __init__(self, store: ResultStore, facts_max: int) -> None:
        self._store = store
        self._facts_max = facts_max
        self._verdicts: dict[str, _Verdict] = {}
        self._chain = Chain()
        self._facts: list[PayloadFact] = []
        self._unique = self._unresolved = 0

    async def add(self, recorded: RecordedEvent, reference: ResultReference) -> None:
        """What stands inside it is told with it, unless an event before has named it."""
        pending = deque([reference])
        while pending:
            each = pending.popleft()
            if each is not reference and each.uri in self._verdicts:
                continue
            is_new = each.uri not in self._verdicts
            verdict = await self._verdict(recorded.envelope.scope, each)
            self._tell(_fact(recorded.envelope.event_id, each, verdict))
            if is_new and verdict.error is None:
                pending += await _named(self._store, recorded.envelope.scope, each)

    async def _verdict(self, scope: Scope, reference: ResultReference) -> _Verdict:
        if scope_of(reference) != scope:
            return _Verdict(None, "payload_of_another_scope")  # and so never looked at
        known = self._verdicts.get(reference.uri)
        if known is not None:
            return known
        verdict = await _examine(reference, scope, self._store)
        self._unique += 1
        if len(self._verdicts) < DIGESTS_REMEMBERED_MAX:
            self._verdicts[reference.uri] = verdict
        return verdict

    def _tell(self, fact: PayloadFact) -> None:
        self._unresolved += not fact.resolved
        extend(self._chain, canonical_json.encode_recorded(fact))
        if len(self._facts) < self._facts_max:
            self._facts.append(fact)

    def verification(self) -> PayloadVerification:
        count = self._chain.count
        summary = PayloadSummary(
            total=count,
            resolved=count - self._unresolved,
            unresolved=self._unresolved,
            unique_refs=self._unique,
            all_resolved=self._unresolved == 0,
            checksum=self._chain.digest,
        )
        return PayloadVerification(
            summary=summary, facts=tuple(self._facts), facts_omitted=count - len(self._facts)
        )


async def verify_payloads(
    events: AsyncIterator[RecordedEvent], store: ResultStore, facts_max: int = FACTS_MAX
) -> PayloadVerification:
    """Read each distinct payload once and report it for every event that names it."""
    facts = _Facts(store, facts_max)
    async for recorded in events:
        for reference in payloads_named_by(recorded):
            await facts.add(recorded, reference)
    return facts.verification()


def payloads_named_by(recorded: RecordedEvent) -> Iterator[ResultReference]:
    """Everything in our stores that an event names, in its envelope or its body."""
    if recorded.envelope.payload_ref is not None:
        yield as_reference(recorded.envelope.payload_ref)
    event = recorded.event
    for name in getattr(event, "__struct_fields__", ()):
        value = getattr(event, name)
        reference = value.reference if isinstance(value, Result) else value
        if isinstance(reference, ResultReference) and scope_of(reference) is not None:
            yield reference


def scope_of(reference: ResultReference) -> Scope | None:
    """Whose bytes it names; None for names that lead to no store of ours."""
    try:
        if is_payload_uri(reference.uri):
            owner = parse_resource(reference.uri)
            return Scope(owner.tenant, owner.organization or "")
        return parse_results(reference.uri).scope
    except NameInvalid:
        return None


async def _examine(reference: ResultReference, scope: Scope, store: ResultStore) -> _Verdict:
    try:
        length = await store.verify(scope, reference)
    except PayloadError as error:  # a store that is away is no verdict on the payload
        return _Verdict(None, error.code)
    if length != reference.byte_length:
        return _Verdict(length, "payload_length")
    return _Verdict(length, None)


async def _named(
    store: ResultStore, scope: Scope, reference: ResultReference
) -> list[ResultReference]:
    """Of what is whole: it is unreadable only where its event names something else by mistake."""
    try:
        return await named_within(store, scope, reference)
    except PayloadError:
        return []


def _fact(event_id: EventId, reference: ResultReference, verdict: _Verdict) -> PayloadFact:
    return PayloadFact(
        event_id=event_id,
        uri=reference.uri,
        sha256=reference.sha256 or "",
        media_type=media_type_of(reference),
        resolved=verdict.error is None,
        byte_length=verdict.byte_length,
        row_count=reference.row_count,
        error=verdict.error,
    )
