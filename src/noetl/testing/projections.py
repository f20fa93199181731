"""Ready-made records, cursors and queries of read models, for tests and benchmarks."""

from collections.abc import Iterable
from typing import Any

from noetl.domain.projection import Cursor, ProjectionQuery, ProjectionRecord
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.histories import execution_ids

FIRST, SECOND, THIRD = execution_ids(3)
OTHER_TENANT = Scope("acme", DEFAULT_SCOPE.organization_id)
OTHER_ORGANIZATION = Scope(DEFAULT_SCOPE.tenant_id, "research")
NOT_MADE_BY_A_LOG = [ExecutionId("abc"), ExecutionId(""), ExecutionId("9" * 30)]


def record(state: dict[str, Any] | None = None, **fields: Any) -> ProjectionRecord:
    canonical = canonical_json.encode({"status": "RUNNING"} if state is None else state)
    given: dict[str, Any] = {
        "scope": DEFAULT_SCOPE,
        "projection_type": "command",
        "projection_id": "a",
        "execution_id": FIRST,
        "version": 1,
        "position": 1,
        "source_event_id": EventId("7012345678901234567"),
        "canonical": canonical,
        "checksum": canonical_json.sha256_hex(canonical),
    }
    return ProjectionRecord(**given | fields)


def cursor_at(position: int, *, consumer: str = "projector/0", log: str = "log-1") -> Cursor:
    return Cursor(consumer=consumer, log_identity=log, position=position)


def query(**fields: Any) -> ProjectionQuery:
    given: dict[str, Any] = {"scope": DEFAULT_SCOPE, "projection_type": "command"}
    return ProjectionQuery(**given | fields)


def ids(records: Iterable[ProjectionRecord]) -> list[str]:
    return [each.projection_id for each in records]
