"""Are the payloads that a history names still there, and still the same? Facts, never bodies."""

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
from noetl.results.tiers import JSON_MEDIA_TYPE

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


async def verify_payloads(
    events: AsyncIterator[RecordedEvent], store: ResultStore, facts_max: int = FACTS_MAX
) -> PayloadVerification:
    """Read each distinct payload once and report it for every event that names it."""
    verdicts: dict[str, _Verdict] = {}
    unique, unresolved, chain, facts = 0, 0, Chain(), list[PayloadFact]()
    async for recorded in events:
        scope = recorded.envelope.scope
        for reference in payloads_named_by(recorded):
            verdict = verdicts.get(reference.uri)
            if scope_of(reference) != scope:
                verdict = _Verdict(None, "payload_of_another_scope")  # and so never looked at
            elif verdict is None:
                verdict = await _examine(reference, scope, store)
                unique += 1
                if len(verdicts) < DIGESTS_REMEMBERED_MAX:
                    verdicts[reference.uri] = verdict
            fact = _fact(recorded.envelope.event_id, reference, verdict)
            unresolved += not fact.resolved
            extend(chain, canonical_json.encode_recorded(fact))
            if len(facts) < facts_max:
                facts.append(fact)
    summary = PayloadSummary(
        total=chain.count,
        resolved=chain.count - unresolved,
        unresolved=unresolved,
        unique_refs=unique,
        all_resolved=unresolved == 0,
        checksum=chain.digest,
    )
    return PayloadVerification(
        summary=summary, facts=tuple(facts), facts_omitted=chain.count - len(facts)
    )


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


def _fact(event_id: EventId, reference: ResultReference, verdict: _Verdict) -> PayloadFact:
    return PayloadFact(
        event_id=event_id,
        uri=reference.uri,
        sha256=reference.sha256 or "",
        media_type=reference.media_type or JSON_MEDIA_TYPE,
        resolved=verdict.error is None,
        byte_length=verdict.byte_length,
        row_count=reference.row_count,
        error=verdict.error,
    )
