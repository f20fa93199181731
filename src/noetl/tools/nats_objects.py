"""Objects: larger than a message may be, stored in pieces under a name."""

import base64
import hashlib
from typing import Any

from nats.js import api
from nats.js.errors import BucketNotFoundError, NotFoundError
from nats.js.object_store import ObjectStore

from noetl.domain.playbook.wording import shown
from noetl.tools.failures import failed
from noetl.tools.nats_keys import Operation
from noetl.tools.nats_request import BUCKET, NatsRequest, as_text

PIECE_SECONDS_MAX = 10.0

_JSON = {"Content-Type": ["application/json"]}


async def _get(request: NatsRequest) -> dict[str, Any]:
    names = _names(request)
    try:
        store = await request.jetstream.object_store(names["bucket"])
        info = await store.get_info(names["name"])
    except NotFoundError:
        return {"status": "not_found", **names, "data": None}
    data = await _content(request, info)
    return {
        "status": "success",
        **names,
        "data": _shown(request, info, data),
        "size": len(data),
    }


async def _put(request: NatsRequest) -> dict[str, Any]:
    names, data = _names(request), request.encoded("data")
    # Remembered with the object, so that a mapping comes back as one and its text as text.
    meta = None if isinstance(request.get("data"), str) else api.ObjectMeta(headers=_JSON)
    info = await (await _store(request, names["bucket"])).put(names["name"], data, meta)
    return {"status": "success", **names, "size": info.size, "digest": info.digest}


async def _delete(request: NatsRequest) -> dict[str, Any]:
    names = _names(request)
    try:
        store = await request.jetstream.object_store(names["bucket"])
        await store.delete(names["name"])
    except NotFoundError:
        return {"status": "not_found", **names}
    return {"status": "success", **names}


async def _info(request: NatsRequest) -> dict[str, Any]:
    names = _names(request)
    try:
        store = await request.jetstream.object_store(names["bucket"])
        info = await store.get_info(names["name"])
    except NotFoundError:
        return {"status": "not_found", **names}
    return {"status": "success", **names, **_facts(info), "chunks": info.chunks}


async def _list(request: NatsRequest) -> dict[str, Any]:
    bucket = request.text("bucket", BUCKET)
    try:
        store = await request.jetstream.object_store(bucket)
    except BucketNotFoundError:
        return {"status": "not_found", "bucket": bucket, "objects": [], "count": 0}
    watcher = await store.watch(ignore_deletes=True)
    objects = []
    try:
        async for info in watcher:
            if info is None:  # all that there was
                break
            objects.append({"name": info.name, **_facts(info)})
    finally:
        await watcher.stop()  # type: ignore[no-untyped-call]  # the library has no type here
    objects.sort(key=lambda each: str(each["name"]))
    return {"status": "success", "bucket": bucket, "objects": objects, "count": len(objects)}


async def _content(request: NatsRequest, info: api.ObjectInfo) -> bytes:
    """The pieces in order. The library's own way leaves a subscription when it is cancelled."""
    data = bytearray()
    if info.size:
        pieces = await request.jetstream.subscribe(
            f"$O.{info.bucket}.C.{info.nuid}", ordered_consumer=True
        )
        try:
            while len(data) < info.size:
                data += (await pieces.next_msg(timeout=PIECE_SECONDS_MAX)).data
        finally:
            await pieces.unsubscribe()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    if info.digest != f"SHA-256={digest}":
        raise failed(
            "storage_access", f"the object {shown(info.name)!r} is damaged; put it once more"
        )
    return bytes(data)


def _names(request: NatsRequest) -> dict[str, str]:
    name = request.text("name") if request.has("name") else request.text("key")
    return {"bucket": request.text("bucket", BUCKET), "name": name}


async def _store(request: NatsRequest, bucket: str) -> ObjectStore:
    try:
        return await request.jetstream.object_store(bucket)
    except BucketNotFoundError:
        return await request.jetstream.create_object_store(bucket)


def _facts(info: api.ObjectInfo) -> dict[str, Any]:
    return {"size": info.size, "mtime": info.mtime, "digest": info.digest}


def _shown(request: NatsRequest, info: api.ObjectInfo, data: bytes) -> Any:
    if request.get("encoding") == "base64":
        return base64.b64encode(data).decode()
    return request.decoded(data) if info.headers == _JSON else as_text(data)


OBJECT_OPERATIONS: dict[str, Operation] = {
    "object_get": _get,
    "object_put": _put,
    "object_delete": _delete,
    "object_list": _list,
    "object_info": _info,
}
