"""Keys and values: a bucket is a stream that keeps the last message of each subject."""

from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any

from nats.js import api
from nats.js.errors import NoStreamResponseError, NotFoundError

from noetl.tools.nats_request import BUCKET, KEY, NatsRequest

Operation = Callable[[NatsRequest], Awaitable[dict[str, Any]]]

_OPERATION = "KV-Operation"
_MARKER = "Nats-Marker-Reason"  # what the server itself puts in the place of an expired value


async def _get(request: NatsRequest) -> dict[str, Any]:
    names = _names(request)
    try:
        message = await request.jetstream.get_msg(_stream(names), subject=_subject(names))
    except NotFoundError:
        return {"status": "not_found", **names, "value": None}
    headers = message.headers or {}
    if _OPERATION in headers or _MARKER in headers:
        return {"status": "not_found", **names, "value": None}
    return {
        "status": "success",
        **names,
        "value": request.decoded(message.data),
        "revision": message.seq,
        "created": message.time.isoformat() if message.time else None,
    }


async def _put(request: NatsRequest) -> dict[str, Any]:
    names, value = _names(request), request.encoded("value")
    lifetime = request.number("ttl", 0) or None

    async def publish() -> api.PubAck:
        return await request.jetstream.publish(
            _subject(names), value, headers=_headers(request), msg_ttl=lifetime
        )

    try:
        stored = await publish()
    except NoStreamResponseError:
        await request.jetstream.create_key_value(bucket=names["bucket"])
        stored = await publish()
    return {"status": "success", **names, "revision": stored.seq}


async def _delete(request: NatsRequest) -> dict[str, Any]:
    return await _mark(request, {_OPERATION: "DEL"})


async def _purge(request: NatsRequest) -> dict[str, Any]:
    return await _mark(request, {_OPERATION: "PURGE", api.Header.ROLLUP.value: "sub"})


async def _mark(request: NatsRequest, marks: dict[str, str]) -> dict[str, Any]:
    names = _names(request)
    headers = {**_headers(request), **marks}
    try:
        await request.jetstream.publish(_subject(names), b"", headers=headers)
    except NoStreamResponseError:
        return {"status": "not_found", **names}
    return {"status": "success", **names}


async def _keys(request: NatsRequest) -> dict[str, Any]:
    bucket = request.text("bucket", BUCKET)
    pattern = request.text("pattern") if request.has("pattern") else ">"
    by_server = _is_subject_filter(pattern)
    try:
        store = await request.jetstream.key_value(bucket)
    except NotFoundError:
        return {"status": "not_found", "bucket": bucket, "keys": [], "count": 0}
    watcher = await store.watch(pattern if by_server else ">", ignore_deletes=True, meta_only=True)
    keys: list[str] = []
    try:
        async for entry in watcher:
            if entry is None:  # all that there was
                break
            if by_server or fnmatchcase(entry.key, pattern):
                keys.append(entry.key)
    finally:
        await watcher.stop()  # type: ignore[no-untyped-call]  # the library has no type here
    return {"status": "success", "bucket": bucket, "keys": sorted(keys), "count": len(keys)}


def _is_subject_filter(pattern: str) -> bool:
    """Whether the server understands it: `*` for one part, `>` for the rest."""
    *parts, last = pattern.split(".")
    return all(part == "*" or not set(part) & set("*?[>") for part in parts) and (
        last in ("*", ">") or not set(last) & set("*?[>")
    )


def _names(request: NatsRequest) -> dict[str, str]:
    return {"bucket": request.text("bucket", BUCKET), "key": request.text("key", KEY)}


def _stream(names: dict[str, str]) -> str:
    return f"KV_{names['bucket']}"


def _subject(names: dict[str, str]) -> str:
    return f"$KV.{names['bucket']}.{names['key']}"


def _headers(request: NatsRequest) -> dict[str, str]:
    return {api.Header.MSG_ID.value: request.key} if request.key else {}


KEY_OPERATIONS: dict[str, Operation] = {
    "kv_get": _get,
    "kv_put": _put,
    "kv_delete": _delete,
    "kv_keys": _keys,
    "kv_purge": _purge,
}
