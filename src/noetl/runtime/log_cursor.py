"""How far a reader of the whole log has come; a cursor of another log is refused."""

from noetl.domain.projection import Cursor
from noetl.kernel.errors import LogReplaced
from noetl.ports.event_log import EventLog
from noetl.ports.projection_store import ProjectionStore


async def load_cursor(log: EventLog, projections: ProjectionStore, consumer: str) -> Cursor:
    """At the beginning for a consumer that nobody knows. Raises LogReplaced."""
    identity = await log.identity()
    cursor = await projections.cursor(consumer)
    if cursor is None:
        return Cursor(consumer=consumer, log_identity=identity, position=0)
    if cursor.log_identity != identity:
        raise LogReplaced(consumer, known=cursor.log_identity, actual=identity)
    return cursor
