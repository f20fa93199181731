"""Which appends a log may take: the rules that need no store, shared by every adapter."""

from collections.abc import Mapping

from noetl.domain.events.envelope import Envelope
from noetl.domain.log import APPEND_EVENTS_MAX, Append, Appended, StreamHead
from noetl.kernel.errors import ChainBroken, KeyReused, LogError, ScopeMismatch, VersionConflict
from noetl.kernel.scope import Scope


def broken_link(append: Append) -> LogError | None:
    """What is wrong with the append in itself, before any stream is looked at."""
    if not 1 <= len(append.events) <= APPEND_EVENTS_MAX:
        reason = f"an append has 1 to {APPEND_EVENTS_MAX} events, not {len(append.events)}"
        return ChainBroken(append.stream, reason)
    expected: object = append.expected_version  # callers may pass anything; others must not pay
    if type(expected) is not int:
        return ChainBroken(append.stream, f"expected_version is {expected!r}, not a number")
    whose = (append.execution_id, *append.scope)
    version = append.expected_version
    previous = append.events[0].envelope.prev_event_id
    for sealed in append.events:
        envelope = sealed.envelope
        version += 1
        if (envelope.execution_id, envelope.tenant_id, envelope.organization_id) != whose:
            return _stranger(append, envelope)
        if envelope.stream_version != version:
            reason = f"event {envelope.event_id} has version {envelope.stream_version}"
            return ChainBroken(append.stream, f"{reason}, not {version}")
        if envelope.prev_event_id != previous:
            return ChainBroken(append.stream, f"event {envelope.event_id} skips {previous}")
        previous = envelope.event_id
    return _repeated(append)


def _repeated(append: Append) -> LogError | None:
    """An id or a key that stands twice in one append."""
    if len({sealed.envelope.event_id for sealed in append.events}) < len(append.events):
        return ChainBroken(append.stream, "two events of one append have the same id")
    keys = keys_of(append)
    if len(set(keys)) == len(keys):
        return None
    return KeyReused(append.stream, next(key for key in keys if keys.count(key) > 1))


def _stranger(append: Append, envelope: Envelope) -> LogError:
    if envelope.execution_id != append.execution_id:
        return ChainBroken(append.stream, f"event {envelope.event_id} is of another stream")
    return ScopeMismatch(append.stream)


def refusal(append: Append, head: StreamHead, scope: Scope | None) -> LogError | None:
    """Why the append does not continue the stream, or None when it does."""
    if scope is not None and scope != append.scope:
        return ScopeMismatch(append.stream)
    if head.version != append.expected_version:
        return VersionConflict(append.stream, expected=append.expected_version, actual=head.version)
    first = append.events[0].envelope
    if first.prev_event_id != head.last_event_id:
        reason = f"event {first.event_id} follows {first.prev_event_id}, not {head.last_event_id}"
        return ChainBroken(append.stream, reason)
    return None


def keys_of(append: Append) -> list[str]:
    keys = (sealed.envelope.idempotency_key for sealed in append.events)
    return [key for key in keys if key is not None]


def recorded_before(
    append: Append, places: Mapping[str, tuple[int, int]]
) -> Appended | KeyReused | None:
    """The outcome of an append whose keys are in the log; `places` maps key to (version, position).

    All of its keys: the same append came twice. Some of them: another one took its key.
    """
    keys = keys_of(append)
    if not keys or not places:
        return None
    unknown = [key for key in keys if key not in places]
    if unknown:
        reused = next(key for key in keys if key in places)
        return KeyReused(append.stream, reused)
    positions = [position for _, position in places.values()]
    version = max(version for version, _ in places.values())
    return Appended(version, min(positions), max(positions), duplicate=True)
