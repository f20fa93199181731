"""Call an HTTP endpoint: one session for all calls, redirects that take no secret along."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from noetl.kernel.errors.reaching import reason_away
from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.templates.secret import Secret, scrub
from noetl.tools.deadlines import Deadlines
from noetl.tools.failures import failed
from noetl.tools.http_lane import Exchange, Lane, sent_once
from noetl.tools.http_plain import PlainAnswer
from noetl.tools.http_redirect import REDIRECTS, redirected
from noetl.tools.http_request import (
    NO_EFFECT,
    Address,
    Request,
    has_no_effect,
    method_of,
    request_of,
    shown,
    what,
)
from noetl.tools.http_response import (
    advice_for,
    check_response_type,
    header_map,
    kind_of_status,
    parsed,
    preview,
    retry_after_seconds,
)

CONNECTIONS_MAX = 200
TIMEOUT_SECONDS = 30.0
RESPONSE_BYTES_MAX = 256 * 1024**2
REDIRECTS_MAX = 10
CHUNK_BYTES = 256 * 1024
PARSED_ASIDE_BYTES_MIN = 1024**2  # a smaller body is parsed faster than a thread is found


class HttpTool:
    """A status that is not 2xx fails the call, with all that the target said.

    A redirect that the author asked not to follow, and 304, are answers like any other.
    """

    waits = False

    def __init__(
        self, services: ToolServices, *, response_bytes_max: int = RESPONSE_BYTES_MAX
    ) -> None:
        self._clock = services.clock
        self._response_bytes_max = response_bytes_max
        self._session: aiohttp.ClientSession | None = None
        self._lane: Lane | None = None
        self._deadlines = Deadlines()

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        try:
            return method_of(parameters) not in NO_EFFECT
        except ToolFailed:
            return True

    async def run(self, call: ToolCall) -> ToolResult:
        request = request_of(call)
        response_type = check_response_type(call.parameters.get("response_type"))
        started = self._clock.monotonic()
        seconds = TIMEOUT_SECONDS if call.timeout_seconds is None else call.timeout_seconds
        try:
            with self._deadlines.within(seconds):
                answer = await self._answer(request, call.parameters)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise _translated(error, request, seconds) from None
        value, is_checked = await _value(request, answer, response_type)
        value["elapsed"] = round(self._clock.monotonic() - started, 6)
        told = {"status": answer.status, "headers": value["headers"]}
        if self._is_good(answer.status, call.parameters):
            return ToolResult(value=value, http=told, is_checked=is_checked)
        raise self._failure(request, value, told)

    async def close(self) -> None:
        session, self._session, self._lane = self._session, None, None
        self._deadlines.close()
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX),
                cookie_jar=aiohttp.DummyCookieJar(),  # no call sees what another one was given
                timeout=aiohttp.ClientTimeout(total=None),  # the whole call has one, redirects too
            )
        return self._session

    async def _answer(self, request: Request, parameters: Mapping[str, Any]) -> "_Answer":
        follow = _flag(parameters.get("follow_redirects"), default=True)
        verify = _flag(parameters.get("verify_ssl"), default=True)
        for _ in range(REDIRECTS_MAX + 1):
            answer = await self._send(request, verify=verify)
            if not follow or answer.status not in REDIRECTS:
                return answer
            target = answer.headers.get("location")
            if target is None:
                return answer
            request = redirected(request, answer.status, target)
        raise failed(
            "client_error",
            f"{request.method} {shown(request)} was redirected more than {REDIRECTS_MAX} times",
        )

    async def _send(self, request: Request, *, verify: bool) -> "_Answer":
        async with self._exchange(request, verify=verify) as reply:
            if isinstance(reply, PlainAnswer):
                body = reply.body
                if len(body) > self._response_bytes_max:
                    raise self._too_large(request, reply.status)
                return _Answer(request.address, reply.status, reply.headers, body)
            headers = header_map(reply.headers)
            if self._is_small(headers):
                body = await reply.content.read()
                return _Answer(request.address, reply.status, headers, body)
            collected = bytearray()
            async for chunk in reply.content.iter_chunked(CHUNK_BYTES):
                collected += chunk
                if len(collected) > self._response_bytes_max:
                    raise self._too_large(request, reply.status)
            return _Answer(request.address, reply.status, headers, bytes(collected))

    def _too_large(self, request: Request, status: int) -> ToolFailed:
        return failed(
            "client_error",
            f"{request.method} {shown(request)} answered with more than"
            f" {self._response_bytes_max} bytes; ask for less at once, by pages",
            code=str(status),
        )

    def _exchange(
        self, request: Request, *, verify: bool
    ) -> "Exchange | AbstractAsyncContextManager[aiohttp.ClientResponse]":
        session = self._opened()
        if self._lane is None:
            self._lane = Lane(session)
        if self._lane.takes(request):
            return Exchange(self._lane, request, verify=verify)
        return session.request(
            request.method,
            URL(request.address.text, encoded=True),
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
            ssl=verify,
            middlewares=() if has_no_effect(request) else (sent_once,),
        )

    def _is_small(self, headers: Mapping[str, str]) -> bool:
        """Known beforehand: what is packed may be any size when it is unpacked."""
        length = headers.get("content-length", "")
        if not length.isdecimal() or "content-encoding" in headers:
            return False
        return int(length) <= self._response_bytes_max

    def _is_good(self, status: int, parameters: Mapping[str, Any]) -> bool:
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return True
        follow = _flag(parameters.get("follow_redirects"), default=True)
        return status == HTTPStatus.NOT_MODIFIED or (status in REDIRECTS and not follow)

    def _failure(self, request: Request, value: dict[str, Any], told: dict[str, Any]) -> ToolFailed:
        status = value["status_code"]
        kind = kind_of_status(status)
        wait = retry_after_seconds(value["headers"], self._clock.now())
        said = preview(value["data"]) if value["data"] not in (None, "") else ""
        message = f"{request.method} {shown(request)} answered {status}; {advice_for(kind)}"
        return failed(
            kind,
            scrub(f"{message}: {said}" if said else message, request.secrets),
            code=str(status),
            detail={"status": status} | ({} if wait is None else {"retry_after": wait}),
            value=value,
            http=told,
        )


class _Answer(NamedTuple):
    address: Address  # of the last redirect
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


async def _value(
    request: Request, answer: _Answer, response_type: str
) -> tuple[dict[str, Any], bool]:
    """What the call gives, and whether all of it is known to be plain."""
    headers = answer.headers
    try:
        if len(answer.body) < PARSED_ASIDE_BYTES_MIN:
            data, is_base64, is_checked = parsed(answer.body, headers, response_type)
        else:
            data, is_base64, is_checked = await asyncio.to_thread(
                parsed, answer.body, headers, response_type
            )
    except ValueError as error:
        raise failed(
            "parse",
            f"{request.method} {shown(request)} did not answer with JSON: {error};"
            " use `response_type: text` to see what it says",
            code=str(answer.status),
            http={"status": answer.status, "headers": scrub(headers, request.secrets)},
        ) from None
    url = answer.address.text
    if request.secrets:
        if any(form in answer.body for secret in request.secrets for form in _forms(secret)):
            data = scrub(data, request.secrets)
        headers, url = scrub(headers, request.secrets), scrub(url, request.secrets)
    value = {
        "status_code": answer.status,
        "headers": headers,
        "data": data,
        "body": data,
        "url": url,
    }
    if is_base64:
        value["encoding"] = "base64"
    return value, is_checked and all(map(str.isascii, (url, *headers, *headers.values())))


def _forms(secret: Secret) -> tuple[bytes, ...]:
    """As it is, and as JSON would write it: looking for these is cheaper than a walk."""
    text = secret.reveal()
    return text.encode(), json.dumps(text)[1:-1].encode()


def _flag(value: Any, *, default: bool) -> bool:
    if value is None or value == "":
        return default
    return str(value).strip().lower() not in ("false", "0", "no", "off")


def _translated(error: Exception, request: Request, seconds: float) -> ToolFailed:
    """The driver's own words are not kept as a cause: they may show the whole address."""
    if isinstance(error, TimeoutError):
        message = f"{what(request)} took longer than {seconds:g} s"
        return failed("timeout", f"{message}; raise `timeout`, or try again")
    if isinstance(error, aiohttp.ClientSSLError):
        words = scrub(f"{what(request)} has no trusted connection: {error}", request.secrets)
        return failed("connection", f"{words}; mend the certificate", retryable=False)
    if isinstance(error, aiohttp.ClientError | OSError):
        words = scrub(f"{what(request)} failed: {reason_away(error)}", request.secrets)
        return failed("connection", f"{words}; check the address, or try again")
    words = scrub(str(error), request.secrets)
    return failed("client_error", f"{what(request)} cannot be sent: {words}")
