"""The http tool against a real server: what is sent, what comes back, how it fails."""

import asyncio
import json
from typing import Any

import pytest

from noetl.servers.process import LOOPBACK
from noetl.tools.http import REDIRECTS_MAX, HttpTool
from tests.tools.http_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.http_fixtures import failure, run
from tests.tools.http_target import Target
from tests.tools.tool_calls import KEY


async def test_a_get_gives_the_parsed_body_twice_and_how_it_went(
    tool: HttpTool, target: Target
) -> None:
    target.answers["/a"] = {
        "text": '{"items": [1, 2.5, null]}',
        "content_type": "application/json",
        "headers": {"X-Page": "2"},
    }
    result = await run(tool, {"url": f"{target.url}/a"})
    value = result.value
    assert value["data"] == {"items": [1, 2.5, None]}
    assert value["body"] == value["data"]
    assert (value["status_code"], value["url"]) == (200, f"{target.url}/a")
    assert value["headers"]["x-page"] == "2"
    assert value["elapsed"] >= 0
    assert result.http == {"status": 200, "headers": value["headers"]}
    assert (target.seen[0].method, target.seen[0].body) == ("GET", b"")


async def test_parameters_without_a_value_are_left_out_and_lists_are_repeated(
    tool: HttpTool, target: Target
) -> None:
    params = {"a": None, "b": [1, None, "x y"], "c": True, "d": 0, "e": "", "f": {"g": 1}}
    await run(tool, {"url": f"{target.url}/p?z=%2F", "params": params})
    assert target.seen[0].query == [
        ("z", "/"), ("b", "1"), ("b", "x y"), ("c", "true"), ("d", "0"), ("e", ""),
        ("f", '{"g":1}'),
    ]  # fmt: skip
    assert target.seen[0].raw_query.startswith("z=%2F&")  # as written: signatures depend on it


@pytest.mark.parametrize(
    ("parameters", "body", "content_type"),
    [
        ({"json": {"a": 1}}, b'{"a":1}', "application/json"),
        ({"payload": [1]}, b"[1]", "application/json"),
        ({"payload": '{"a": 1}'}, b'{"a": 1}', "application/json"),
        ({"json": "word"}, b'"word"', "application/json"),
        ({"json": 0}, b"0", "application/json"),
        ({"data": {"a": 1}}, b'{"a":1}', "application/json"),
        ({"form": {"a": "x y", "b": None, "c": [1, 2]}}, b"a=x+y&c=1&c=2",
         "application/x-www-form-urlencoded"),
        ({"data": {"a": "ü"}, "headers": {"content-type": "application/x-www-form-urlencoded"}},
         b"a=%C3%BC", "application/x-www-form-urlencoded"),
        ({"data": "a=1", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
         b"a=1", "application/x-www-form-urlencoded"),
        ({"body": "wörd"}, "wörd".encode(), "text/plain; charset=utf-8"),
        ({"body": "<a/>", "headers": {"Content-Type": "text/xml"}}, b"<a/>", "text/xml"),
        ({"body": b"\x00\xff"}, b"\x00\xff", "application/octet-stream"),
        ({"headers": '{"X-A": "1"}'}, b"", None),
    ],
)  # fmt: skip
async def test_bodies_by_name_and_content_type(
    tool: HttpTool,
    target: Target,
    parameters: dict[str, Any],
    body: bytes,
    content_type: str | None,
) -> None:
    await run(tool, {"url": target.url, "method": "post", **parameters})
    [seen] = target.seen
    assert seen.body == body
    assert content_type is None or seen.headers["content-type"] == content_type


async def test_a_multipart_form_has_a_boundary(tool: HttpTool, target: Target) -> None:
    headers = {"Content-Type": "multipart/form-data"}
    fields = {"a": "x", "b": "y"}
    await run(tool, {"url": target.url, "method": "POST", "data": fields, "headers": headers})
    [seen] = target.seen
    boundary = seen.headers["content-type"].partition("boundary=")[2].encode()
    assert seen.body.split(b"--" + boundary)[1].endswith(b'name="a"\r\n\r\nx\r\n')


@pytest.mark.parametrize("method", ["POST", "put", "PATCH", "DELETE"])
async def test_t2_methods_with_an_effect_carry_the_key(
    tool: HttpTool, target: Target, method: str
) -> None:
    assert tool.has_effect({"method": method})
    await run(tool, {"url": target.url, "method": method})
    mine = {"idempotency-key": "mine"}
    await run(tool, {"url": target.url, "method": method, "headers": mine})
    assert [seen.headers["idempotency-key"] for seen in target.seen] == [KEY, "mine"]


@pytest.mark.parametrize("method", [None, "GET", "head", "OPTIONS"])
async def test_t2_methods_that_only_look_carry_none(
    tool: HttpTool, target: Target, method: str | None
) -> None:
    assert not tool.has_effect({"method": method})
    await run(tool, {"url": target.url, "method": method})
    assert "idempotency-key" not in target.seen[0].headers


@pytest.mark.parametrize(
    ("answer", "response_type", "data"),
    [
        ({"body": b"{bad", "content_type": "application/json"}, "text", "{bad"),
        ({"body": b"", "content_type": "application/json"}, None, ""),
        ({"body": b'{"a":1}', "content_type": "text/plain"}, None, '{"a":1}'),
        ({"body": b'{"a":1}', "content_type": "text/plain"}, "json", {"a": 1}),
        ({"body": b'{"a":1}', "content_type": "application/problem+json"}, "auto", {"a": 1}),
        ({"body": b'{"a":1}', "content_type": "application/json"}, "text", '{"a":1}'),
        ({"body": b"\xe4", "content_type": "text/plain", "charset": "latin-1"}, None, "ä"),
        ({"body": b"\xff\x00", "content_type": "image/png"}, None, "/wA="),
        ({"body": b"abc", "content_type": "text/plain"}, "bytes", "YWJj"),
        ({"body": b"[123456789012345678901234]", "content_type": "application/json"}, None,
         ["123456789012345678901234"]),
    ],
)  # fmt: skip
async def test_bodies_are_read_as_they_are_meant(
    tool: HttpTool,
    target: Target,
    answer: dict[str, Any],
    response_type: str | None,
    data: Any,
) -> None:
    target.answers["/x"] = answer
    result = await run(tool, {"url": f"{target.url}/x", "response_type": response_type})
    assert result.value["data"] == data


async def test_t5_many_calls_run_at_once(tool: HttpTool, target: Target) -> None:
    calls = [asyncio.ensure_future(run(tool, {"url": f"{target.url}/hang"})) for _ in range(100)]
    await target.until_hanging(100)
    target.released.set()
    assert {result.value["status_code"] for result in await asyncio.gather(*calls)} == {200}


async def test_t5_no_call_gets_the_cookies_of_another(tool: HttpTool, target: Target) -> None:
    target.answers["/login"] = {"headers": {"Set-Cookie": "session=1"}}
    named = target.url.replace(LOOPBACK, "localhost")  # numbers get no cookies anyway
    await run(tool, {"url": f"{named}/login"})
    await run(tool, {"url": f"{named}/x"})
    assert "cookie" not in target.seen[1].headers


async def test_redirects_are_followed_and_a_post_becomes_a_get(
    tool: HttpTool, target: Target
) -> None:
    target.answers["/a"] = {"status": 302, "headers": {"Location": "/b?x=1"}}
    result = await run(tool, {"url": f"{target.url}/a", "method": "POST", "json": {"a": 1}})
    assert (target.seen[1].method, target.seen[1].body) == ("GET", b"")
    assert "content-type" not in target.seen[1].headers
    assert result.value["url"] == f"{target.url}/b?x=1"

    target.answers["/a"] = {"status": 307, "headers": {"Location": "/c"}}
    await run(tool, {"url": f"{target.url}/a", "method": "POST", "json": {"a": 1}})
    assert (target.seen[3].method, target.seen[3].body) == ("POST", b'{"a":1}')
    assert target.seen[3].headers["idempotency-key"] == KEY


async def test_a_redirect_that_is_not_followed_is_an_answer(tool: HttpTool, target: Target) -> None:
    target.answers["/a"] = {"status": 302, "headers": {"Location": "/b"}}
    result = await run(tool, {"url": f"{target.url}/a", "follow_redirects": "false"})
    assert result.value["headers"]["location"] == "/b"
    assert len(target.seen) == 1


async def test_redirects_without_end_are_left(tool: HttpTool, target: Target) -> None:
    target.answers["/a"] = {"status": 302, "headers": {"Location": "/a"}}
    failed = await failure(tool, {"url": f"{target.url}/a"})
    assert failed.failure.kind == "client_error"
    assert len(target.seen) == REDIRECTS_MAX + 1


async def test_a_large_answer_is_read_whole(tool: HttpTool, target: Target) -> None:
    rows = [{"id": number, "name": "x" * 20} for number in range(50_000)]
    target.answers["/a"] = {"text": json.dumps(rows), "content_type": "application/json"}
    assert (await run(tool, {"url": f"{target.url}/a"})).value["data"] == rows


async def test_a_tool_that_was_closed_opens_again_and_closing_twice_is_fine(
    tool: HttpTool, target: Target
) -> None:
    await run(tool, {"url": target.url})
    await tool.close()
    await tool.close()
    await run(tool, {"url": target.url})
