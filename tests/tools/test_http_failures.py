"""The http tool against a real server: how calls fail, and what they never tell."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from noetl.domain.credential import OpenCredential
from noetl.servers.process import LOOPBACK, free_ports
from noetl.tools.http import HttpTool
from tests.tools.http_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.http_fixtures import SECRET, failure, opened, run
from tests.tools.http_target import Target, serving
from tests.tools.tool_calls import call, services


async def test_json_that_was_asked_for_and_is_none_fails(tool: HttpTool, target: Target) -> None:
    failed = await failure(tool, {"url": target.url, "response_type": "json"})
    assert failed.failure.kind == "parse"
    assert failed.http is not None
    assert failed.http["status"] == 200


@pytest.mark.parametrize("body", [b"{bad", b"NaN", b'"\\ud800"', b"[" * 100_000])
async def test_json_that_is_promised_and_is_none_is_its_text(
    tool: HttpTool, target: Target, body: bytes
) -> None:
    """Playbooks written elsewhere count on it; `response_type: json` is strict."""
    target.answers["/x"] = {"body": body, "content_type": "application/json"}
    assert (await run(tool, {"url": f"{target.url}/x"})).value["data"] == body.decode()


async def test_a_refusal_that_is_no_json_is_still_read(tool: HttpTool, target: Target) -> None:
    target.answers["/x"] = {"status": 500, "body": b"<sorry>", "content_type": "application/json"}
    failed = await failure(tool, {"url": f"{target.url}/x"})
    assert failed.failure.kind == "server_error"
    assert "<sorry>" in failed.failure.message


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "client_error", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "client_error", False),
        (422, "client_error", False),
        (429, "rate_limit", True),
        (451, "client_error", False),
        (499, "client_error", False),
        (500, "server_error", True),
        (503, "server_error", True),
        (599, "server_error", True),
        (304, None, False),
        (204, None, False),
        (302, "client_error", False),  # without a place to go
    ],
)
async def test_t1_the_status_says_which_kind_of_failure_it_is(
    tool: HttpTool, target: Target, status: int, kind: str | None, retryable: bool
) -> None:
    body = {} if status in (204, 304) else {"text": '{"why": "because"}'}
    target.answers["/s"] = {"status": status, **body, "content_type": "application/json"}
    if kind is None:
        assert (await run(tool, {"url": f"{target.url}/s"})).value["status_code"] == status
        return
    failed = await failure(tool, {"url": f"{target.url}/s"})
    assert (failed.failure.kind, failed.failure.retryable) == (kind, retryable)
    assert failed.failure.code == str(status)
    assert failed.value["data"] == {"why": "because"}
    assert failed.http == {"status": status, "headers": failed.value["headers"]}
    assert "because" in failed.failure.message


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None)],
)
async def test_a_busy_target_says_when_to_come_back(
    tool: HttpTool, target: Target, said: str, seconds: float | None
) -> None:
    target.answers["/s"] = {"status": 429, "headers": {"Retry-After": said}}
    failed = await failure(tool, {"url": f"{target.url}/s"})
    assert failed.failure.detail.get("retry_after") == seconds


async def test_t1_a_target_that_is_away_or_hangs_up_is_a_connection_failure(
    tool: HttpTool, target: Target
) -> None:
    [port] = free_ports(1)
    for url in (f"http://{LOOPBACK}:{port}", f"{target.url}/cut"):
        failed = await failure(tool, {"url": url, "method": "POST"})
        assert (failed.failure.kind, failed.failure.retryable) == ("connection", True)


async def test_t3_a_timeout_fails_the_call_and_hangs_up(tool: HttpTool, target: Target) -> None:
    failed = await failure(tool, {"url": f"{target.url}/hang"}, timeout_seconds=0.2)
    assert (failed.failure.kind, failed.failure.retryable) == ("timeout", True)
    await target.until_hanging(0)


async def test_t3_a_cancelled_call_hangs_up(tool: HttpTool, target: Target) -> None:
    running = asyncio.ensure_future(tool.run(call("http", {"url": f"{target.url}/hang"})))
    await target.until_hanging(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await target.until_hanging(0)


@pytest.mark.parametrize(
    ("credentials", "header", "text"),
    [
        (opened("bearer", token=SECRET), "authorization", f"Bearer {SECRET}"),
        (opened("basic", user="u", password=SECRET), "authorization",
         "Basic " + base64.b64encode(f"u:{SECRET}".encode()).decode()),
        (opened("api_key", key=SECRET, header="X-Mine"), "x-mine", SECRET),
        (opened("http", headers={"X-A": SECRET}), "x-a", SECRET),
    ],
)  # fmt: skip
async def test_t4_credentials_are_sent_and_never_told(
    tool: HttpTool,
    target: Target,
    credentials: dict[str, OpenCredential],
    header: str,
    text: str,
) -> None:
    echoed = json.dumps({"you": text, "plain": SECRET})
    target.answers["/s"] = {
        "status": 500, "text": echoed, "content_type": "application/json",
        "headers": {"X-Echo": text},
    }  # fmt: skip
    failed = await failure(tool, {"url": f"{target.url}/s"}, credentials=credentials)
    assert target.seen[0].headers[header] == text
    told = json.dumps([failed.failure.message, failed.value, failed.http, repr(failed.__cause__)])
    assert text.rpartition(" ")[2] not in str(json.loads(told))
    assert "secret" not in told


async def test_t4_a_key_in_the_query_is_sent_and_never_told(tool: HttpTool, target: Target) -> None:
    credentials = opened("api_key", key=SECRET, **{"in": "query"}, param="key")
    target.answers["/s"] = {"status": 404, "text": "no"}
    failed = await failure(tool, {"url": f"{target.url}/s?a=1"}, credentials=credentials)
    assert target.seen[0].query == [("a", "1"), ("key", SECRET)]
    assert "secret" not in f"{failed.failure} {failed.value}"

    [port] = free_ports(1)
    failed = await failure(tool, {"url": f"http://{LOOPBACK}:{port}"}, credentials=credentials)
    assert "secret" not in f"{failed.failure} {failed.__cause__!r}"


async def test_t4_a_password_in_the_address_is_sent_as_a_header_and_never_told(
    tool: HttpTool, target: Target
) -> None:
    target.answers["/s"] = {"status": 401}
    url = target.url.replace("//", "//me:pass%40word@") + "/s"
    failed = await failure(tool, {"url": url})
    expected = "Basic " + base64.b64encode(b"me:pass@word").decode()
    assert target.seen[0].headers["authorization"] == expected
    assert "word" not in f"{failed.failure} {failed.value}"


async def test_the_authors_header_comes_before_the_credentials(
    tool: HttpTool, target: Target
) -> None:
    headers = {"authorization": "Mine"}
    credentials = opened("bearer", token=SECRET)
    await run(tool, {"url": target.url, "headers": headers}, credentials=credentials)
    assert target.seen[0].headers["authorization"] == "Mine"


async def test_t4_a_redirect_to_another_host_takes_no_secret_along(
    tool: HttpTool, target: Target
) -> None:
    """Nor any header that may be one: whoever wrote it meant the first host alone."""
    async with serving() as other:
        target.answers["/a"] = {"status": 307, "headers": {"Location": f"{other.url}/b"}}
        credentials = opened("api_key", key=SECRET, header="Range")
        headers = {"Authorization": "Bearer abc", "Cookie": "a=b", "X-API-Key": "1", "Host": "h"}
        harmless = {"accept": "text/plain", "accept-language": "de", "user-agent": "me"}
        asked = {"url": f"{target.url}/a", "headers": headers | harmless}
        await run(tool, asked, credentials=credentials)
        [first], [seen] = target.seen, other.seen
        assert {"authorization", "cookie", "x-api-key", "range"} < set(first.headers)
        assert set(seen.headers) == {"host", "accept-encoding", *harmless}
        assert harmless.items() < seen.headers.items()
        assert seen.headers["host"] in other.url


@pytest.mark.parametrize("status", [307, 308])
async def test_t4_a_redirect_to_another_host_takes_no_body_along(
    tool: HttpTool, target: Target, status: int
) -> None:
    async with serving() as other:
        target.answers["/a"] = {"status": status, "headers": {"Location": f"{other.url}/b"}}
        asked = {"url": f"{target.url}/a", "method": "POST", "json": {"password": "1"}}
        failed = await failure(tool, asked)
        assert (failed.failure.kind, failed.failure.code) == ("client_error", str(status))
        assert other.url in failed.failure.message
        assert "follow_redirects: false" in failed.failure.message
        assert not other.seen
        target.answers["/a"]["status"] = 303
        await run(tool, asked)
        assert [(seen.method, seen.body) for seen in other.seen] == [("GET", b"")]


async def test_an_answer_that_is_too_large_is_left(tmp_path: Path, target: Target) -> None:
    small = HttpTool(services(tmp_path), response_bytes_max=1000)
    target.answers["/a"] = {"body": b"x" * 1001}
    failed = await failure(small, {"url": f"{target.url}/a"})
    assert "more than 1000 bytes" in failed.failure.message
    assert not failed.failure.retryable
    await small.close()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "whole address"),
        ({"url": "ftp://x"}, "whole address"),
        ({"url": "http://[::1"}, "whole address"),
        ({"url": "http://h:99999/"}, "whole address"),
        ({"url": "http://h", "method": "G T"}, "method"),
        ({"url": "http://h", "headers": "x"}, "not a map"),
        ({"url": "http://h", "headers": {"A": "b\nC: d"}}, "line break"),
        ({"url": "http://h", "headers": {"A B": "c"}}, "header 'A B'"),
        ({"url": "http://h", "params": [1]}, "not a map"),
        ({"url": "http://h", "json": {"a": object()}}, "JSON"),
        ({"url": "http://h", "response_type": "xml"}, "response_type"),
    ],
)
async def test_t4_what_cannot_be_sent_says_what_to_change(
    tool: HttpTool, parameters: dict[str, Any], words: str
) -> None:
    failed = await failure(tool, parameters)
    assert words in failed.failure.message
    assert not failed.failure.retryable
