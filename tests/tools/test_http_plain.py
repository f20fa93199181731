"""Answers read past the parser of the session: they say the same, and nothing is read as one."""

import asyncio
from typing import Any

import pytest
from aiohttp.client_proto import ResponseHandler

from noetl.tools import http_plain
from noetl.tools.http import HttpTool
from noetl.tools.http_plain import PLAIN_BYTES_MAX
from tests.tools.http_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.http_fixtures import failure, run
from tests.tools.test_http_lane import OK, speaking
from tests.tools.tool_calls import call


def answered(*lines: str, body: bytes = b"ok", length: int | None = None) -> bytes:
    said = len(body) if length is None else length
    head = "\r\n".join(("HTTP/1.1 200 OK", *lines, f"Content-Length: {said}", "", ""))
    return head.encode() + body


PLAIN = [
    [answered()],
    [answered("Content-Type: application/json", body=b'{"a": [1, "\xc3\xa9"]}')],
    [answered("Set-Cookie: a=1", "set-cookie: b=2", "X-Empty:", "X-Wide:   padded \t ")],
    [answered("X-Name: \u00e4\u20ac", "Connection: Keep-Alive", "Keep-Alive: timeout=5")],
    [answered(body=b"")],
    [answered(body=b"x" * PLAIN_BYTES_MAX)],
    [answered(body=b"parts")[:-5], b"pa", b"rt", b"s"],
    [b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"],
    [b"HTTP/1.1 503 Later\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"],
]
OTHER = [
    [answered(body=b"x" * (PLAIN_BYTES_MAX + 1))],
    [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nContent-Length: \xd9\xa2\r\n\r\nok"],
    [b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"],
    [b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"],
    [b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"],
    [b"HTTP/1.1 200 OK\r\nX-Bell: \x07\r\nContent-Length: 2\r\n\r\nok"],
    [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", None],
    [OK[:9], OK[9:]],
]


async def told(tool: HttpTool, parts: list[bytes | None]) -> Any:
    """What a call gives or fails with, without what differs between two of the same."""
    async with speaking(lambda _: parts) as spoken:
        asked = {"url": f"{spoken.url}/"}
        try:
            value = (await run(tool, asked)).value
        except Exception:  # noqa: BLE001 - how it fails is asked below
            failed = await failure(tool, asked)
            value, kind = failed.value, failed.failure.kind
            return kind, value and {**value, "elapsed": 0, "url": ""}
        return {**value, "elapsed": 0, "url": ""}


@pytest.mark.parametrize("parts", [*PLAIN, *OTHER])
async def test_both_ways_to_read_an_answer_give_the_same(
    tool: HttpTool, parts: list[bytes | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = await told(tool, parts)
    monkeypatch.setattr(http_plain, "_head", lambda _: None)
    assert ours == await told(tool, parts)


@pytest.mark.parametrize(
    ("parts", "is_plain"), [*((each, True) for each in PLAIN), *((each, False) for each in OTHER)]
)
def test_what_is_plain_is_known_by_its_first_bytes(
    parts: list[bytes | None], is_plain: bool
) -> None:
    head = http_plain._head(parts[0] or b"")
    assert (head is not None and head.length <= PLAIN_BYTES_MAX) is is_plain


class Unheard(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """What is answered is given by hand, bit by bit, as no real line would promise to."""


@pytest.mark.parametrize("more", [b"", b"more than was said"])
async def test_a_head_is_read_once_however_many_bits_the_body_comes_in(
    monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    read: list[bytes] = []
    head_of = http_plain._head

    def counted(data: bytes) -> http_plain._Head | None:
        read.append(data)
        return head_of(data)

    monkeypatch.setattr(http_plain, "_head", counted)
    listening = http_plain.Listening(ResponseHandler(asyncio.get_running_loop()))
    asked = listening.ask(Unheard(), b"")
    body = b"".join(b"%03d;" % number for number in range(100))
    whole = answered(body=body)
    begin = len(whole) - len(body)
    bits = [whole[:begin], *(whole[at : at + 4] for at in range(begin, len(whole), 4))]
    bits[-1] += more
    for bit in bits:
        assert not asked.done()
        listening.data_received(bit)
    assert read == bits[:1]
    answer = await asked
    assert (answer and answer.body) == (None if more else body)


async def test_what_a_target_says_unasked_is_no_answer_to_the_next_request(tool: HttpTool) -> None:
    """The second answer comes when nobody has asked for one, on a connection that is kept."""
    unasked = asyncio.Event()
    forged = OK.replace(b"ok", b"no")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)
            await writer.drain()
            await unasked.wait()
            writer.write(forged)
            await writer.drain()
            await reader.read()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = "http://{}:{}/".format(*server.sockets[0].getsockname()[:2])
        assert (await run(tool, {"url": url})).value["data"] == "ok"
        unasked.set()
        assert tool._session is not None
        for _ in range(100):  # until the client has it
            await asyncio.sleep(0)
        assert (await run(tool, {"url": url})).value["data"] == "ok"
        await tool.close()


async def test_two_answers_to_one_question_leave_no_connection_behind(tool: HttpTool) -> None:
    async with speaking(lambda _: [OK + OK.replace(b"ok", b"no")]) as spoken:
        for _ in range(2):
            assert (await run(tool, {"url": f"{spoken.url}/"})).value["data"] == "ok"
        assert spoken.connections == 2


async def test_t3_a_call_that_is_given_up_takes_its_connection_along(tool: HttpTool) -> None:
    """What comes late is nobody's answer."""
    late = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"/late" in asked:
            writer.write(OK[:-1])
            await writer.drain()
            await reader.read()  # until the client hangs up
            late.set()
        else:
            writer.write(OK)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        failed = await failure(tool, {"url": f"{url}/late"}, timeout_seconds=0.05)
        assert failed.failure.kind == "timeout"
        await late.wait()
        assert (await run(tool, {"url": f"{url}/"})).value["data"] == "ok"


async def test_a_header_that_is_no_text_is_left_to_a_closer_look(tool: HttpTool) -> None:
    """The value as a whole is said to be plain, or nothing is."""
    json = "Content-Type: application/json"
    odd = answered(json, "X-Odd: N", body=b"{}").replace(b"N", b"\xff", 1)
    for answer, is_checked in ((answered(json, body=b"{}"), True), (odd, False)):
        async with speaking(lambda _, parts=[answer]: parts) as spoken:  # type: ignore[misc]
            result = await tool.run(call("http", {"url": f"{spoken.url}/"}))
            assert result.is_checked is is_checked
