"""Requests over a session's connections without what a session makes anew for each of them.

The session still connects, keeps connections and reads what comes back; here are only the bytes
that a plain request is. Whatever needs more than that goes the session's own way.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp
from aiohttp import http
from aiohttp.connector import Connection
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy
from yarl import URL

from noetl.tools.http_plain import Listening, PlainAnswer, listening_on
from noetl.tools.http_request import Request, has_no_effect

BODY_BYTES_MAX: Final = 64 * 1024
"""A larger one is written bit by bit, as the target takes it."""

ORIGINS_KEPT_MAX: Final = 256
CONNECTIONS_TRIED_MAX: Final = 3

_SETTLED_BY_THE_SESSION: Final = frozenset(
    (
        *("connection", "content-encoding", "content-length", "expect", "host", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    )
)
"""Headers that change how a request is sent, and not only what it says."""

_SAME_WHEN_REPEATED: Final = frozenset({"PUT", "DELETE"})
_WITHOUT_LENGTH: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_WITH_TYPE: Final = frozenset({"POST", "PUT", "PATCH"})
_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)
_INFORMATIONAL: Final = range(100, 200)
_SWITCHING: Final = 101


class Reply(NamedTuple):
    """The head of a response, and its body as it comes."""

    status: int
    headers: Mapping[str, str]
    content: StreamReader


class Exchange:
    """A request on its way: as a context, it has the reply and gives the connection back."""

    __slots__ = ("_connection", "_lane", "_listening", "_request", "_verify")

    def __init__(self, lane: "Lane", request: Request, *, verify: bool) -> None:
        self._lane = lane
        self._request = request
        self._verify = verify
        self._connection: Connection | None = None
        self._listening: Listening | None = None

    async def __aenter__(self) -> Reply | PlainAnswer:
        try:
            return await self._reply()
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            if not self._may_be_sent_again():
                raise
        return await self._reply()  # the other side may have closed a kept connection

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if self._connection is not None:
            if kind is None:
                self._connection.release()
            else:
                self._connection.close()

    def _may_be_sent_again(self) -> bool:
        """What has an effect, only where a kept connection ended before it was answered: a new one
        that ends has most likely brought the request to its target."""
        request, listening = self._request, self._listening
        if has_no_effect(request):
            return True
        is_stale = listening is not None and listening.questions > 1 and listening.is_silent
        return is_stale and request.is_repeatable and request.method in _SAME_WHEN_REPEATED

    async def _reply(self) -> Reply | PlainAnswer:
        request = self._request
        origin = self._lane.origin(request.address.origin, verify=self._verify)
        connection = await self._lane.connected(origin)
        try:
            written = _written(request, origin.host)
            reply = None
            if request.method != "HEAD":
                self._listening, transport = listening_on(connection)
                reply = await self._listening.ask(transport, written)
            self._connection = connection
            return reply or await self._read(connection, written)
        except BaseException:
            connection.close()
            raise

    async def _read(self, connection: Connection, written: bytes) -> Reply:
        """What is not plain, as the session's own protocol reads it."""
        protocol = connection.protocol
        assert protocol is not None, "a connection that was just given is open"
        if self._request.method == "HEAD":
            assert protocol.transport is not None
            protocol.set_response_params(skip_payload=True, read_until_eof=True)
            protocol.transport.write(written)
        while True:
            try:
                message, content = await protocol.read()
            except http.HttpProcessingError as error:
                raise self._misread(error) from error
            if message.code not in _INFORMATIONAL or message.code == _SWITCHING:
                return Reply(message.code, message.headers, content)

    def _misread(self, error: http.HttpProcessingError) -> aiohttp.ClientResponseError:
        asked = self._request
        url, headers = URL(asked.address.text, encoded=True), CIMultiDictProxy(asked.headers)
        told = aiohttp.RequestInfo(url, asked.method, headers, url)
        return aiohttp.ClientResponseError(told, (), status=error.code, message=error.message)


async def sent_once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """For the session's own way: it sends PUT and DELETE again when a connection ends, unless it
    is told by an error that it does not take for one of those."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


class _Origin(NamedTuple):
    host: str  # as the header says it
    to_connect: aiohttp.ClientRequest


class Lane:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        assert session.connector is not None
        self._connector = session.connector
        self._origins: OrderedDict[tuple[str, bool], _Origin] = OrderedDict()

    def takes(self, request: Request) -> bool:
        if request.body is not None and len(request.body) > BODY_BYTES_MAX:
            return False
        if request.method == "CONNECT":
            return False
        headers = request.headers
        return not headers or _SETTLED_BY_THE_SESSION.isdisjoint(map(str.lower, headers))

    async def connected(self, origin: _Origin) -> Connection:
        """What a kept one has been told unasked is no answer to anybody."""
        for _ in range(CONNECTIONS_TRIED_MAX):
            connection = await self._connector.connect(origin.to_connect, [], _NO_TIMEOUT)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("the target speaks before it is asked")

    def origin(self, written: str, *, verify: bool) -> _Origin:
        known = self._origins.get((written, verify))
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        to_connect = aiohttp.ClientRequest("GET", URL(written), loop=loop, ssl=verify)
        made = self._origins[written, verify] = _Origin(to_connect.headers["Host"], to_connect)
        if len(self._origins) > ORIGINS_KEPT_MAX:
            self._origins.popitem(last=False)
        return made


def _written(request: Request, host: str) -> bytes:
    """The request as bytes, with the headers that every client sends."""
    method, given, body = request.method, request.headers, request.body
    lines = [f"{method} {request.address.target} HTTP/1.1", f"Host: {host}"]
    if given:
        lines += [f"{name}: {text}" for name, text in given.items()]
        lines += [line for name, line in _USUAL if name not in given]
    else:
        lines += _USUAL_LINES
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    elif method not in _WITHOUT_LENGTH:
        lines.append("Content-Length: 0")
    if (body is not None or method in _WITH_TYPE) and "Content-Type" not in given:
        lines.append("Content-Type: application/octet-stream")
    lines += ["", ""]
    head = "\r\n".join(lines)
    if head.count("\r") + head.count("\n") != 2 * (len(lines) - 1) or "\0" in head:
        raise ValueError("there is a line break in one of its headers")
    return head.encode() + body if body else head.encode()


_USUAL: Final = tuple(
    (name, f"{name}: {text}")
    for name, text in (
        *aiohttp.ClientRequest.DEFAULT_HEADERS.items(),
        ("User-Agent", http.SERVER_SOFTWARE),
    )
)
_USUAL_LINES: Final = [line for _, line in _USUAL]
