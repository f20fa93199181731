"""When a state is worth freezing, what a frozen state carries, and when it may be used."""

import msgspec

from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope

INTERVAL_EVENTS = 10_000


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A state and everything that must match before it may stand in for the events before it."""

    scope: Scope  # also the encryption context: a snapshot never leaves its tenant
    execution_id: ExecutionId
    stream_version: int
    position: int
    last_event_id: EventId
    fold_version: int
    registry_digest: str
    canonical_form: str
    playbook_digest: str | None
    payload_chain: str  # over the digests of every payload the events named
    state: bytes
    checksum: str  # sha256 of `state`
    taken_at: Instant


class FoldIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which fold this build would run. Another identity may give another state."""

    fold_version: int
    registry_digest: str
    canonical_form: str = canonical_json.FORM


def why_unusable(
    snapshot: Snapshot, identity: FoldIdentity, *, playbook_digest: str | None = None
) -> str | None:
    """None when the snapshot may be used, else the reason in words.

    `playbook_digest` is that of the stream's first event; None when the caller has not read it.
    """
    if snapshot.fold_version != identity.fold_version:
        return f"made by fold {snapshot.fold_version}, this is fold {identity.fold_version}"
    if snapshot.registry_digest != identity.registry_digest:
        return "made with another set of upcasters"
    if snapshot.canonical_form != identity.canonical_form:
        return f"made in canonical form {snapshot.canonical_form}"
    if playbook_digest not in (None, snapshot.playbook_digest):
        return "made of another playbook"
    if canonical_json.sha256_hex(snapshot.state) != snapshot.checksum:
        return "its bytes do not match its checksum"
    return None


def is_due(
    version: int, last_snapshot_version: int, interval_events: int = INTERVAL_EVENTS
) -> bool:
    return version - last_snapshot_version >= interval_events
