"""Plain requests past the session: they say the same, and read whatever HTTP may answer."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from noetl.servers.process import LOOPBACK
from noetl.tools.http import HttpTool
from noetl.tools.http_lane import BODY_BYTES_MAX, Lane
from tests.tools.http_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.http_fixtures import failure, run
from tests.tools.http_target import Target
from tests.tools.tool_calls import services

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Answer = Callable[[int], list[bytes | None]]
"""What is sent for the nth request of a connection, bit by bit; None hangs up."""


class Spoken:
    def __init__(self) -> None:
        self.url = ""
        self.requests: list[bytes] = []
        self.connections = 0


@asynccontextmanager
async def speaking(answer: Answer) -> AsyncIterator[Spoken]:
    spoken = Spoken()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken.connections += 1
        asked = 0
        try:
            while True:
                spoken.requests.append(await reader.readuntil(b"\r\n\r\n"))
                asked += 1
                for part in answer(asked):
                    if part is None:
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with server:
        spoken.url = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        yield spoken


PLAIN = [
    {},
    {"method": "HEAD"},
    {"method": "POST"},
    {"method": "DELETE"},
    {"method": "POST", "json": {"a": 1}},
    {"method": "PUT", "body": b"\x00\xff"},
    {"method": "PATCH", "body": "ü", "headers": {"X-Mine": "ä", "accept": "text/plain"}},
    {"params": {"a": "b c"}, "headers": {"User-Agent": "me", "Cookie": "a=b", "x-a": ""}},
]


@pytest.mark.parametrize("parameters", PLAIN)
async def test_a_plain_request_says_what_the_sessions_own_would_say(
    tool: HttpTool, target: Target, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"url": f"{target.url}/a/b", **parameters}
    await run(tool, asked)
    monkeypatch.setattr(Lane, "takes", lambda *_: False)
    await run(tool, asked)
    plain, own = target.seen
    assert plain == own
    assert list(plain.headers) == list(own.headers)


@pytest.mark.parametrize(
    "parameters",
    [
        {"headers": {"Host": "elsewhere"}},
        {"headers": {"connection": "close"}},
        {"headers": {"Content-Length": "3"}, "body": "abc", "method": "POST"},
        {"headers": {"Expect": "100-continue"}, "body": "abc", "method": "POST"},
        {"body": "x" * (BODY_BYTES_MAX + 1), "method": "POST"},
    ],
)
async def test_what_changes_how_a_request_is_sent_goes_the_sessions_way(
    tool: HttpTool, target: Target, parameters: dict[str, Any]
) -> None:
    await run(tool, {"url": target.url, **parameters})
    [seen] = target.seen
    assert seen.body == parameters.get("body", "").encode()
    for name, text in parameters.get("headers", {}).items():
        assert seen.headers[name.lower()] == text


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ([OK], "ok"),
        ([OK[:5], OK[5:-1], OK[-1:]], "ok"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], "ok"),
        ([b"HTTP/1.1 102 Processing\r\n\r\n" + OK], "ok"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nab\r\n1\r\nc\r\n",
          b"0\r\n\r\n"], "abc"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", b"until ", b"the end", None], "until the end"),
        ([b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold"], "old"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], ""),
        ([b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
          % (len(gzip.compress(b"packed", mtime=0)), gzip.compress(b"packed", mtime=0))],
         "packed"),
    ],
)  # fmt: skip
async def test_an_answer_is_read_however_it_comes(
    tool: HttpTool, parts: list[bytes | None], body: str
) -> None:
    async with speaking(lambda _: parts) as spoken:
        for _ in range(2):
            assert (await run(tool, {"url": f"{spoken.url}/"})).value["data"] == body


async def test_a_connection_is_kept_until_the_target_says_otherwise(tool: HttpTool) -> None:
    async with speaking(lambda _: [OK]) as spoken:
        for _ in range(3):
            await run(tool, {"url": f"{spoken.url}/"})
        assert spoken.connections == 1
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    async with speaking(lambda _: [closing, None]) as spoken:
        for _ in range(3):
            await run(tool, {"url": f"{spoken.url}/"})
        assert spoken.connections == 3


async def test_a_kept_connection_that_was_closed_meanwhile_is_made_again(tool: HttpTool) -> None:
    """The target hangs up on the second request of every connection."""
    async with speaking(lambda asked: [OK] if asked == 1 else [None]) as spoken:
        for _ in range(2):
            await run(tool, {"url": f"{spoken.url}/"})
        assert spoken.connections == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GET"])
@pytest.mark.parametrize("headers", [{}, {"Connection": "keep-alive"}])
@pytest.mark.parametrize("is_kept", [True, False])
async def test_t2_a_request_with_an_effect_is_never_sent_twice(
    tool: HttpTool, method: str, headers: dict[str, str], is_kept: bool
) -> None:
    """Neither past the session nor by its own way, on a kept connection or on a new one."""
    first: list[bytes | None] = [OK] if is_kept else [None]
    asked = {"method": method, "headers": headers}
    async with speaking(lambda count: first if count == 1 else [None]) as spoken:
        if is_kept:
            await run(tool, {"url": f"{spoken.url}/first"})
        failed = await failure(tool, {"url": f"{spoken.url}/second", **asked}, is_repeatable=False)
        assert (failed.failure.kind, failed.failure.retryable) == ("connection", True)
        assert sum(b" /second " in line for line in spoken.requests) == 1


@pytest.mark.parametrize(("method", "sent"), [("POST", 1), ("PUT", 2), ("DELETE", 2), ("GET", 2)])
async def test_what_is_the_same_when_repeated_goes_again_where_a_kept_connection_was_closed(
    tool: HttpTool, method: str, sent: int
) -> None:
    hung_up: list[bytes | None] = [None]
    async with speaking(lambda count: [OK] if count == 1 else hung_up) as spoken:
        await run(tool, {"url": f"{spoken.url}/first"})
        asked = {"url": f"{spoken.url}/second", "method": method}
        if sent == 1:
            await failure(tool, asked)
        else:
            await run(tool, asked)
        assert sum(b" /second " in line for line in spoken.requests) == sent


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(
    ("first", "second"), [([None], [None]), ([OK], [OK[:10], None])], ids=["new", "half answered"]
)
async def test_t2_a_connection_that_brought_the_request_to_its_target_is_not_tried_again(
    tool: HttpTool, method: str, first: list[bytes | None], second: list[bytes | None]
) -> None:
    async with speaking(lambda count: first if count == 1 else second) as spoken:
        if first == [OK]:
            await run(tool, {"url": f"{spoken.url}/first"})
        await failure(tool, {"url": f"{spoken.url}/second", "method": method})
        assert sum(b" /second " in line for line in spoken.requests) == 1


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n"])
async def test_t1_what_is_no_http_is_a_connection_failure(tool: HttpTool, answer: bytes) -> None:
    async with speaking(lambda _: [answer, None]) as spoken:
        failed = await failure(tool, {"url": f"{spoken.url}/"})
        assert failed.failure.kind == "connection"


async def test_t1_an_answer_that_breaks_off_is_a_connection_failure(tool: HttpTool) -> None:
    async with speaking(lambda _: [OK[:-1], None]) as spoken:
        failed = await failure(tool, {"url": f"{spoken.url}/"})
        assert (failed.failure.kind, failed.failure.retryable) == ("connection", True)


async def test_an_answer_of_unknown_length_that_is_too_large_is_left(tmp_path: Path) -> None:
    small = HttpTool(services(tmp_path), response_bytes_max=1000)
    async with speaking(lambda _: [b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 2000]) as spoken:
        failed = await failure(small, {"url": f"{spoken.url}/"})
        assert "more than 1000 bytes" in failed.failure.message
    await small.close()


async def test_t4_a_key_with_a_line_break_cannot_be_sent(tool: HttpTool, target: Target) -> None:
    asked = {"url": target.url, "method": "POST"}
    failed = await failure(tool, asked, idempotency_key="a\r\nX-Other: b")
    assert "cannot be sent" in failed.failure.message
    assert not target.seen
