"""Answers that are whole and plain when they come, read past the parser that takes every form.

Plain is the head of a body with a length, packed in nothing and followed by nothing, letter by
letter as the grammar has it. Whatever differs is left to the session's own protocol, untouched.
"""

import asyncio
import re
from typing import Final, NamedTuple

from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

PLAIN_BYTES_MAX: Final = 64 * 1024
"""A longer body is read bit by bit by those who know how to stop it."""

_HEAD: Final = re.compile(
    rb"HTTP/1\.1 (?!204|304)([2-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n"
)
_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_NOT_PLAIN: Final = frozenset({"transfer-encoding", "content-encoding", "upgrade", "trailer"})


class PlainAnswer(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case; what was sent several times is joined
    body: bytes


class _Head(NamedTuple):
    status: int
    headers: dict[str, str]
    begin: int  # of the body
    length: int


class Listening(asyncio.Protocol):
    """Stands on a connection before the session's own protocol, which reads what is not plain."""

    __slots__ = ("_asked", "_behind", "_early", "_head", "_missing", "is_silent", "questions")

    def __init__(self, behind: ResponseHandler) -> None:
        self._behind = behind
        self._asked: asyncio.Future[PlainAnswer | None] | None = None
        self._early: list[bytes] = []  # of an answer that has not come to its end
        self._head: _Head | None = None  # of the same
        self._missing = 0  # bytes of its body
        self.questions = 0
        self.is_silent = True  # since the last of them

    def ask(
        self, transport: asyncio.Transport, written: bytes
    ) -> "asyncio.Future[PlainAnswer | None]":
        """None: what comes is not plain, or nothing does; the protocol behind has it."""
        self._asked = asyncio.get_running_loop().create_future()
        self.questions += 1
        self.is_silent = True
        transport.write(written)
        return self._asked

    def data_received(self, data: bytes) -> None:
        self.is_silent = False
        asked = self._asked
        if asked is None:
            self._behind.data_received(data)
            return
        if self._head is None:
            self._head = _head(data)
            if self._head is not None:
                self._missing = self._head.length + self._head.begin
        self._early.append(data)
        self._missing -= len(data)
        head = self._head
        if head is None or self._missing < 0 or head.length > PLAIN_BYTES_MAX:
            self._give_up()
        elif not self._missing:
            body = b"".join(self._early)[head.begin :]
            self._forget()
            if not asked.done():
                asked.set_result(PlainAnswer(head.status, head.headers, body))

    def eof_received(self) -> None:
        self._behind.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._asked is not None:
            self._give_up()
        self._behind.connection_lost(exc)

    def pause_writing(self) -> None:
        self._behind.pause_writing()

    def resume_writing(self) -> None:
        self._behind.resume_writing()

    def _give_up(self) -> None:
        asked, data = self._asked, b"".join(self._early)
        self._forget()
        self._behind.set_response_params(read_until_eof=True)
        if data:
            self._behind.data_received(data)
        if asked is not None and not asked.done():
            asked.set_result(None)

    def _forget(self) -> None:
        self._asked, self._head = None, None
        self._early = []


def listening_on(connection: Connection) -> tuple[Listening, asyncio.Transport]:
    """Whoever uses the connection later than us does not notice."""
    behind, transport = connection.protocol, connection.transport
    assert behind is not None, "a connection that was just given is open"
    assert transport is not None
    listening = transport.get_protocol()
    if not isinstance(listening, Listening):
        listening = Listening(behind)
        transport.set_protocol(listening)
    return listening, transport


def _head(data: bytes) -> _Head | None:
    found = _HEAD.match(data)
    if found is None:
        return None
    headers: dict[str, str] = {}
    for line in found[2].decode("utf-8", "surrogateescape").split("\r\n")[:-1]:
        written, _, text = line.partition(":")
        name, text = written.lower(), text.strip(" \t")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    length = headers.get("content-length", "")
    if not _LENGTH.fullmatch(length) or not _NOT_PLAIN.isdisjoint(headers):
        return None
    if headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return _Head(int(found[1]), headers, found.end(), int(length))
