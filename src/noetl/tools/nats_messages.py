"""Messages of streams: publish one, take the next ones, look at one, look at the stream."""

import asyncio
from typing import Any

from nats.aio.msg import Msg
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from noetl.tools.failures import failed
from noetl.tools.nats_keys import Operation
from noetl.tools.nats_request import STREAM, NatsRequest

BATCH_MAX = 1_000
BATCH = 10
FETCH_MS = 5_000
FETCH_MS_MAX = 600_000


async def _publish(request: NatsRequest) -> dict[str, Any]:
    given = request.get("headers") or {}
    if not isinstance(given, dict):
        raise failed("client_error", "NATS js_publish needs a mapping of `headers`")
    headers = {str(name): str(value) for name, value in given.items()}
    if request.key:
        headers.setdefault(api.Header.MSG_ID.value, request.key)
    stored = await request.jetstream.publish(
        request.text("subject"),
        request.encoded("data" if request.get("data") is not None else "value"),
        stream=request.text("stream", STREAM) if request.has("stream") else None,
        headers=headers,
    )
    return {
        "status": "success",
        "stream": stored.stream,
        "seq": stored.seq,
        "duplicate": bool(stored.duplicate),
    }


async def _consume(request: NatsRequest) -> dict[str, Any]:
    """Acknowledged messages are gone: a task that must not lose one works with `ack: false`."""
    stream, consumer = request.text("stream", STREAM), request.text("consumer", STREAM)
    await _ensure_consumer(request, stream, consumer)
    batch = request.whole("batch", BATCH, BATCH_MAX)
    wait_ms = request.whole("timeout_ms", FETCH_MS, FETCH_MS_MAX)
    subscription = await request.jetstream.pull_subscribe_bind(consumer, stream)
    try:
        fetched = await _fetched(subscription, batch, wait_ms / 1_000)
        if request.flag("ack", True):
            await asyncio.gather(*(message.ack_sync() for message in fetched))
    finally:
        await subscription.unsubscribe()
    messages = [_message(request, message) for message in fetched]
    return {
        "status": "success",
        "stream": stream,
        "consumer": consumer,
        "messages": messages,
        "count": len(messages),
    }


async def _fetched(
    subscription: JetStreamContext.PullSubscription, batch: int, seconds: float
) -> list[Msg]:
    try:
        return await subscription.fetch(batch, timeout=seconds)
    except NatsTimeoutError:
        return []


async def _ensure_consumer(request: NatsRequest, stream: str, consumer: str) -> None:
    try:
        await request.jetstream.consumer_info(stream, consumer)
    except NotFoundError:
        subject = request.text("subject") if request.has("subject") else None
        await request.jetstream.add_consumer(
            stream,
            durable_name=consumer,
            ack_policy=api.AckPolicy.EXPLICIT,
            filter_subject=subject,
        )


def _message(request: NatsRequest, message: Msg) -> dict[str, Any]:
    facts = message.metadata
    return {
        "subject": message.subject,
        "seq": facts.sequence.stream,
        "data": request.decoded(message.data),
        "headers": dict(message.headers or {}),
        "time": facts.timestamp.isoformat(),
        "delivered": facts.num_delivered,
    }


async def _get(request: NatsRequest) -> dict[str, Any]:
    stream = request.text("stream", STREAM)
    try:
        if request.has("seq"):
            found = await request.jetstream.get_msg(stream, seq=request.whole("seq", 1, 2**63 - 1))
        elif request.has("subject"):
            found = await request.jetstream.get_last_msg(stream, request.text("subject"))
        elif request.flag("last", False):
            state = (await request.jetstream.stream_info(stream)).state
            if not state.messages:
                return {"status": "not_found", "stream": stream}
            found = await request.jetstream.get_msg(stream, seq=state.last_seq)
        else:
            raise failed("client_error", "NATS js_get_msg needs `seq`, `subject` or `last: true`")
    except NotFoundError:
        return {"status": "not_found", "stream": stream}
    return {
        "status": "success",
        "stream": stream,
        "subject": found.subject,
        "seq": found.seq,
        "data": request.decoded(found.data),
        "headers": dict(found.headers or {}),
        "time": found.time.isoformat() if found.time else None,
    }


async def _info(request: NatsRequest) -> dict[str, Any]:
    stream = request.text("stream", STREAM)
    try:
        info = await request.jetstream.stream_info(stream)
    except NotFoundError:
        return {"status": "not_found", "stream": stream}
    config, state = info.config, info.state
    return {
        "status": "success",
        "stream": stream,
        "config": {
            "name": config.name,
            "subjects": config.subjects or [],
            "retention": str(config.retention) if config.retention else None,
            "storage": str(config.storage) if config.storage else None,
            "max_msgs": config.max_msgs,
            "max_bytes": config.max_bytes,
            "max_age_seconds": config.max_age,
        },
        "state": {
            "messages": state.messages,
            "bytes": state.bytes,
            "first_seq": state.first_seq,
            "last_seq": state.last_seq,
            "consumer_count": state.consumer_count,
        },
    }


MESSAGE_OPERATIONS: dict[str, Operation] = {
    "js_publish": _publish,
    "js_consume": _consume,
    "js_get_msg": _get,
    "js_stream_info": _info,
}
