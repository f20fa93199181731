"""Read and write NATS: keys and values, objects, and the messages of streams.

A key that is not there is a result with `status: not_found`; a write to a bucket that is not there
makes the bucket. Whatever is published carries the cycle's name as its message id, so a cycle that
runs again within the stream's window is stored once.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import nats.errors
import nats.js.errors

from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.templates.secret import Secret, scrub
from noetl.tools.credential_fields import NatsFields, nats_fields, secrets_of
from noetl.tools.failures import failed
from noetl.tools.nats_connections import NatsConnections
from noetl.tools.nats_keys import KEY_OPERATIONS
from noetl.tools.nats_messages import MESSAGE_OPERATIONS
from noetl.tools.nats_objects import OBJECT_OPERATIONS
from noetl.tools.nats_request import NatsRequest, flag

OPERATIONS = KEY_OPERATIONS | OBJECT_OPERATIONS | MESSAGE_OPERATIONS

_READING = frozenset(
    {"kv_get", "kv_keys", "object_get", "object_list", "object_info"}
    | {"js_get_msg", "js_stream_info"}
)
_OWN_FIELDS = ("url", "user", "password", "token")

_FAILED_CONNECTION = (
    OSError,
    nats.errors.NoServersError,
    nats.errors.ConnectionClosedError,
    nats.errors.StaleConnectionError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.SecureConnRequiredError,
    nats.errors.SecureConnWantedError,
    nats.errors.SecureConnFailedError,
)
_AUTHORS_MISTAKE = (
    ValueError,
    nats.errors.BadSubjectError,
    nats.errors.BadHeaderError,
    nats.errors.MaxPayloadError,
    nats.js.errors.BadRequestError,
    nats.js.errors.BadBucketError,
    nats.js.errors.InvalidKeyError,
    nats.js.errors.InvalidBucketNameError,
    nats.js.errors.InvalidObjectNameError,
)
_FULL = ("maximum", "insufficient", "exceeded")


class NatsTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        del services  # a call brings all that is needed
        self._connections = NatsConnections()

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        operation = str(parameters.get("operation"))
        if operation == "js_consume":
            return flag(parameters.get("ack"), True)  # unacknowledged messages come again
        return operation not in _READING

    async def run(self, call: ToolCall) -> ToolResult:
        operation = str(call.parameters.get("operation"))
        if operation not in OPERATIONS:
            meant = nearest(operation, OPERATIONS)
            advice = f"did you mean {meant!r}?" if meant else f"use {choices(OPERATIONS)}"
            raise failed("client_error", f"NATS has no operation {shown(operation)!r}; {advice}")
        fields = _fields(call)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                return ToolResult(value=await self._value(operation, call, fields))
        except (TimeoutError, ValueError, OSError, nats.errors.Error) as error:
            raise _failure(error, call, fields) from None  # its text may hold a password

    async def close(self) -> None:
        await self._connections.close()

    async def _value(self, operation: str, call: ToolCall, fields: NatsFields) -> Any:
        connection = await self._connections.get(fields)
        try:
            return await OPERATIONS[operation](NatsRequest(connection.jetstream(), call))
        except (asyncio.CancelledError, nats.errors.TimeoutError):
            task = asyncio.current_task()
            was_cancelled = task is not None and task.cancelling() > 0
            if was_cancelled or connection.is_connected:
                raise
            # The library cancels, or leaves waiting, who waits on a connection that is lost.
            raise nats.errors.ConnectionClosedError from None


def _fields(call: ToolCall) -> NatsFields:
    """What stands beside the operation wins over the credential."""
    own = {name: call.parameters.get(name) for name in _OWN_FIELDS}
    stored = nats_fields(call.credential.data if call.credential else {})
    given = nats_fields(own)
    fields = NatsFields(
        url=given.url or stored.url,
        user=given.user or stored.user,
        password=given.password or stored.password,
        token=given.token or stored.token,
    )
    if fields.url is None:
        raise failed(
            "client_error",
            "NATS has no address; name a credential with `nats_url` as `auth`, or give `url`",
        )
    return fields


def _failure(error: Exception, call: ToolCall, fields: NatsFields) -> ToolFailed:
    kind, reason = _kind_and_reason(error, call)
    hidden = [*secrets_of(call)]
    hidden += [Secret(text) for text in (fields.password, fields.token, fields.url) if text]
    message = f"NATS {call.parameters['operation']} failed: {reason}"
    code = getattr(error, "err_code", None)
    return failed(kind, str(scrub(message, hidden)), code=str(code) if code else None)


def _kind_and_reason(error: Exception, call: ToolCall) -> tuple[str, str]:
    told = str(error) or type(error).__name__
    if isinstance(error, TimeoutError | nats.errors.TimeoutError):
        return "timeout", "no answer in time; is the server overloaded, or `timeout` too short?"
    if "authorization" in told.lower():
        return "auth", "the server refused the user; check the credential"
    if isinstance(error, _FAILED_CONNECTION):
        return "connection", f"the server cannot be reached ({told}); check its address"
    if isinstance(error, nats.js.errors.NoStreamResponseError):
        subject = shown(call.parameters.get("subject"))
        return "not_found", f"no stream takes the subject {subject!r}; make one that does"
    if isinstance(error, nats.js.errors.NotFoundError):
        return "not_found", f"{told}; check the names of bucket and stream"
    return _kind_of_refusal(error, told)


def _kind_of_refusal(error: Exception, told: str) -> tuple[str, str]:
    described = getattr(error, "description", None) or told
    if any(word in described.lower() for word in _FULL) and "payload" not in described:
        return "storage_quota", f"{described}; remove something, or raise the limit"
    if isinstance(error, _AUTHORS_MISTAKE):
        return "client_error", f"{described}; correct the task's parameters"
    if isinstance(error, nats.js.errors.APIError | nats.errors.NoRespondersError):
        return "server_error", f"{described}; is JetStream enabled on the server?"
    return "unknown", described
