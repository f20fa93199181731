"""Which appends of a group land and where: the rules of admission over what the log holds."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from noetl.domain.admission import keys_of, recorded_before, refusal
from noetl.domain.log import EMPTY_STREAM, Append, Appended, AppendOutcome, StreamHead
from noetl.kernel.errors import DuplicateFact, LogError, VersionConflict
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.wire.columns import unique_fact


class Place(NamedTuple):
    """Where a stream ends, and whose it is."""

    head: StreamHead = EMPTY_STREAM
    scope: Scope | None = None


class Recorded(msgspec.Struct):
    """Which keys, facts and event ids of a group are in the log already."""

    keys: dict[tuple[str, str], tuple[int, int]] = {}  # (execution, key) -> (version, position)
    facts: set[tuple[str, str]] = set()
    event_ids: set[tuple[str, str]] = set()


class Ledger:
    """Admits appends one after the other, as if each had been committed before the next.

    Without `recorded` it takes keys and facts for new: the log's indexes find out if they are not.
    """

    def __init__(
        self, places: dict[ExecutionId, Place], recorded: Recorded | None = None, position: int = 0
    ) -> None:
        self.position = position
        self._places = places
        self._recorded = recorded

    def admit(self, append: Append) -> AppendOutcome:
        place = self._places.get(append.execution_id, Place())
        refused = refusal(append, place.head, place.scope)
        if refused is not None:
            # A stale writer may be one that did not hear that its events had landed.
            stale = isinstance(refused, VersionConflict)
            return (self._recorded_before(append) if stale else None) or refused
        return self._recorded_before(append) or self._repeated(append) or self._land(append, place)

    def _recorded_before(self, append: Append) -> AppendOutcome | None:
        if self._recorded is None:
            return None
        known = self._recorded.keys
        execution = append.execution_id
        return recorded_before(
            append,
            {key: known[execution, key] for key in keys_of(append) if (execution, key) in known},
        )

    def _repeated(self, append: Append) -> LogError | None:
        """What stands in the stream already, or is said twice; see `broken_link` for the rest."""
        if self._recorded is None:
            return None
        execution = append.execution_id
        seen: set[str] = set()
        for sealed in append.events:
            fact, event_id = unique_fact(sealed), sealed.envelope.event_id
            if (execution, event_id) in self._recorded.event_ids:
                return DuplicateFact(append.stream, f"event {event_id}")
            if fact is None:
                continue
            if fact in seen or (execution, fact) in self._recorded.facts:
                return DuplicateFact(append.stream, fact)
            seen.add(fact)
        return None

    def _land(self, append: Append, place: Place) -> Appended:
        first, count = self.position + 1, len(append.events)
        self.position += count
        head = StreamHead(place.head.version + count, append.events[-1].envelope.event_id)
        self._places[append.execution_id] = Place(head, append.scope)
        if self._recorded is not None:
            self._remember(self._recorded, append, first)
        return Appended(head.version, first, self.position)

    @staticmethod
    def _remember(recorded: Recorded, append: Append, first_position: int) -> None:
        execution = append.execution_id
        for position, sealed in enumerate(append.events, start=first_position):
            envelope = sealed.envelope
            recorded.event_ids.add((execution, envelope.event_id))
            if envelope.idempotency_key is not None:
                place = (envelope.stream_version, position)
                recorded.keys[execution, envelope.idempotency_key] = place
            if (fact := unique_fact(sealed)) is not None:
                recorded.facts.add((execution, fact))


def claimed_places(appends: Sequence[Append]) -> dict[ExecutionId, Place]:
    """The streams as the first append to each says they are; those it begins are left out."""
    first: dict[ExecutionId, Append] = {}
    for append in appends:
        first.setdefault(append.execution_id, append)
    return {
        execution: Place(
            StreamHead(append.expected_version, append.events[0].envelope.prev_event_id),
            append.scope,
        )
        for execution, append in first.items()
        if append.expected_version > 0
    }
