"""Objects for workers that cannot reach the store: bytes in and out, however many."""

from collections.abc import AsyncGenerator, AsyncIterator

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from noetl.api.route import Asked, Nothing, Route, get
from noetl.domain.work_messages import Acknowledged
from noetl.kernel.errors import ObjectMissing, RequestInvalid
from noetl.kernel.instant import to_datetime
from noetl.ports.object_store import LIST_OBJECTS_MAX, OCTETS, ObjectFacts, StoredObject

PATH = "/api/internal/objects"


class ObjectPut(msgspec.Struct, frozen=True, kw_only=True):
    media_type: str = OCTETS
    replace: bool = False  # for the repair of damaged objects only


class ObjectGet(msgspec.Struct, frozen=True, kw_only=True):
    start: int | None = None
    length: int | None = None
    facts: bool = False  # what the store knows, and none of the bytes


class ObjectList(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    after: str = ""
    limit: int = LIST_OBJECTS_MAX


class _Streamed(StreamingResponse):
    """Lets go of the object also when the caller hangs up half way. Without a length: a reader
    sees by the encoding that the line broke, and another object may take the place meanwhile."""

    def __init__(self, first: bytes, rest: AsyncIterator[bytes]) -> None:
        super().__init__(_joined(first, rest), media_type=OCTETS)
        self._rest = rest

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            if isinstance(self._rest, AsyncGenerator):
                await self._rest.aclose()


async def put(asked: Asked[Nothing, ObjectPut]) -> StoredObject:
    """Nothing is there until the last byte has come."""
    objects, query = asked.services.results.objects, asked.query
    store = objects.replace if query.replace else objects.create
    return await store(asked.path["key"], _given(asked), media_type=query.media_type)


async def read(asked: Asked[Nothing, ObjectGet]) -> Response:
    objects, key, query = asked.services.results.objects, asked.path["key"], asked.query
    if query.start is not None or query.length is not None:
        start, length = query.start or 0, query.length or 0
        if min(start, length) < 0:
            raise RequestInvalid("start and length are counts of bytes; give none below 0")
        return Response(await objects.read_range(key, start, length), media_type=OCTETS)
    if query.facts:
        facts = await _facts(asked)
        return Response(msgspec.json.encode(facts), media_type="application/json")
    chunks = objects.read(key)
    return _Streamed(await anext(chunks, b""), chunks)  # what is missing is said before


async def head(asked: Asked[Nothing, Nothing]) -> Response:
    return Response(media_type=OCTETS, headers=_headers(await _facts(asked)))


async def listed(asked: Asked[Nothing, ObjectList]) -> list[ObjectFacts]:
    query = asked.query
    limit = max(1, min(query.limit, LIST_OBJECTS_MAX))
    return await asked.services.results.objects.list_objects(
        query.prefix, after=query.after, limit=limit
    )


async def delete(asked: Asked[Nothing, Nothing]) -> Acknowledged:
    await asked.services.results.objects.delete(asked.path["key"])
    return Acknowledged()


async def _given(asked: Asked[Nothing, ObjectPut]) -> AsyncIterator[bytes]:
    async for chunk in asked.stream():
        if chunk:
            yield chunk


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _facts(asked: Asked[Nothing, ObjectGet] | Asked[Nothing, Nothing]) -> ObjectFacts:
    key = asked.path["key"]
    facts = await asked.services.results.objects.head(key)
    if facts is None:
        raise ObjectMissing(key)
    return facts


def _headers(facts: ObjectFacts) -> dict[str, str]:
    told = {"Content-Length": str(facts.byte_length)}
    if facts.modified is not None:
        told["Last-Modified"] = to_datetime(facts.modified).strftime("%a, %d %b %Y %H:%M:%S GMT")
    return told


ROUTES = (
    Route(
        method="PUT",
        path=f"{PATH}/{{key:path}}",
        summary="Store an object",
        endpoint=put,
        body=Nothing,
        query=ObjectPut,
        gives=StoredObject,
    ),
    # Before the one that gives the bytes, which would answer the same question with all of them.
    Route(
        method="HEAD",
        path=f"{PATH}/{{key:path}}",
        summary="Whether an object is there, and its length",
        endpoint=head,
        body=Nothing,
        query=Nothing,
        gives=None,
        media_type=OCTETS,
    ),
    get(
        f"{PATH}/{{key:path}}",
        "The bytes of an object",
        read,
        query=ObjectGet,
        media_type=OCTETS,
    ),
    Route(
        method="DELETE",
        path=f"{PATH}/{{key:path}}",
        summary="Remove an object",
        endpoint=delete,
        body=Nothing,
        query=Nothing,
        gives=Acknowledged,
    ),
    get(PATH, "Objects below a prefix", listed, query=ObjectList, gives=list[ObjectFacts]),
)
