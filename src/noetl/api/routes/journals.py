"""Journals of frames over HTTP: whoever takes a frame over finds them, on any machine."""

from noetl.api.route import Asked, Nothing, post
from noetl.domain.work_messages import Acknowledged, JournalAppend, JournalName, JournalRead


async def append(asked: Asked[JournalAppend, Nothing]) -> Acknowledged:
    body = asked.body
    asked.check_grant(body.execution_id)
    await asked.services.check_scope(body.execution_id)
    await asked.services.journal.append(body.execution_id, body.frame_id, body.entries)
    return Acknowledged()


async def read(asked: Asked[JournalName, Nothing]) -> JournalRead:
    body = asked.body
    asked.check_grant(body.execution_id)
    await asked.services.check_scope(body.execution_id)
    entries = await asked.services.journal.read(body.execution_id, body.frame_id)
    return JournalRead(entries=tuple(entries))


async def remove(asked: Asked[JournalName, Nothing]) -> Acknowledged:
    body = asked.body
    asked.check_grant(body.execution_id)
    await asked.services.check_scope(body.execution_id)
    await asked.services.journal.remove(body.execution_id, body.frame_id)
    return Acknowledged()


ROUTES = (
    post(
        "/api/work/journals/append",
        "Record finished calls of a frame",
        append,
        body=JournalAppend,
        gives=Acknowledged,
    ),
    post(
        "/api/work/journals/read",
        "What earlier holders of a frame recorded",
        read,
        body=JournalName,
        gives=JournalRead,
    ),
    post(
        "/api/work/journals/remove",
        "A frame is over",
        remove,
        body=JournalName,
        gives=Acknowledged,
    ),
)
