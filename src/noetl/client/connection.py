"""Requests to a server: bytes there and back, and its problems raised as errors."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import msgspec

from noetl.client.line import Line
from noetl.client.problems import error_of
from noetl.kernel.errors import LogUnavailable, RequestInvalid
from noetl.kernel.errors.reaching import reason_away

ANSWER_SECONDS_MAX = 60.0
"""How long an answer may take beyond what it was asked to wait."""

CONNECTIONS_MAX = 100

_T = TypeVar("_T")


class Connection:
    """Safe for many tasks at once. Opened by the first request, in the loop that makes it."""

    def __init__(self, server: str, key: str | None = None, line: Line | None = None) -> None:
        self.server = server.rstrip("/")
        self._line = line  # None: whoever asks says by itself that nobody answers
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._session: aiohttp.ClientSession | None = None

    async def get(
        self, path: str, gives: type[_T], query: Mapping[str, str | int] | None = None
    ) -> _T:
        return self._decoded(await self.data("GET", path, query=query), gives)

    async def post(self, path: str, body: object, gives: type[_T], wait_seconds: float = 0.0) -> _T:
        data = await self.data("POST", path, body=body, wait_seconds=wait_seconds)
        return self._decoded(data, gives)

    async def data(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str | int] | None = None,
        wait_seconds: float = 0.0,
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=wait_seconds + ANSWER_SECONDS_MAX)
        request: dict[str, Any] = {"params": query, "timeout": timeout}
        if body is not None:
            request["data"] = msgspec.json.encode(body)
        async with self.opened(method, path, request) as response:
            return await response.read()

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, request: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A good answer, to be read by the caller. Trouble with the line is LogUnavailable."""
        session = self._opened_session()
        try:
            async with session.request(method, self.server + path, **request) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    error = error_of(self.server, response.status, await response.read())
                    self._tell(str(error) if isinstance(error, LogUnavailable) else None)
                    raise error
                self._tell(None)
                yield response
        except aiohttp.InvalidURL as error:
            raise RequestInvalid(
                f"{self.server} is no address of a server; write it like http://127.0.0.1:8082"
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            message = f"{self.server} does not answer: {reason_away(error)}; is the server running?"
            self._tell(message)
            raise LogUnavailable(message) from error

    def _tell(self, trouble: str | None) -> None:
        if self._line is None:
            return
        if trouble is None:
            self._line.up()
        else:
            self._line.down(trouble)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={**self._headers, "Content-Type": "application/json"},
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX),
            )
        return self._session

    def _decoded(self, data: bytes, gives: type[_T]) -> _T:
        try:
            return msgspec.json.decode(data, type=gives)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RequestInvalid(
                f"{self.server} gives answers that we cannot read: {error};"
                " are both of the same version?"
            ) from error
