"""What can go wrong with NATS: each failure has its kind, and nothing is left behind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from nats.js import JetStreamContext

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolFailed
from noetl.servers.nats import NatsServer
from noetl.servers.process import LOOPBACK, free_ports
from noetl.tools.credential_fields import nats_fields
from noetl.tools.nats import NatsTool
from tests.tools.nats_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.nats_fixtures import Run
from tests.tools.tool_calls import call, credential

pytestmark = pytest.mark.servers


async def test_taking_from_a_stream_that_is_not_there_fails(run_nats: Run, fresh_name: str) -> None:
    with pytest.raises(ToolFailed) as raised:
        await run_nats("js_consume", stream=fresh_name, consumer="worker")

    assert raised.value.failure.kind == "not_found"


async def test_a_subject_that_no_stream_takes_fails(run_nats: Run, fresh_name: str) -> None:
    with pytest.raises(ToolFailed, match="no stream takes the subject") as raised:
        await run_nats("js_publish", subject=f"{fresh_name}.a", data="x")

    assert raised.value.failure.kind == "not_found"


async def test_a_full_stream_says_so(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(
        name=fresh_name, subjects=[fresh_name], max_msgs=1, discard="new", max_bytes=-1
    )
    await run_nats("js_publish", subject=fresh_name, data="x")

    with pytest.raises(ToolFailed) as raised:
        await run_nats("js_publish", subject=fresh_name, data="y", cycle="another")

    assert raised.value.failure.kind == "storage_quota"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"operation": "kv_got"}, "did you mean 'kv_get'"),
        ({"operation": None}, "NATS has no operation"),
        ({"operation": "kv_get", "key": "k"}, "needs `bucket`"),
        ({"operation": "kv_get", "bucket": "a.b", "key": "k"}, "takes no bucket like 'a.b'"),
        ({"operation": "kv_get", "bucket": "b", "key": "k>"}, "takes no key like 'k>'"),
        ({"operation": "kv_put", "bucket": "b", "key": "k"}, "needs `value`"),
        ({"operation": "object_put", "bucket": "b", "name": "n"}, "needs `data`"),
        (
            {"operation": "kv_put", "bucket": "b", "key": "k", "value": "%", "encoding": "base64"},
            "needs base64",
        ),
        ({"operation": "js_get_msg", "stream": "s"}, "needs `seq`, `subject` or `last: true`"),
        ({"operation": "js_publish", "subject": "a b", "data": "x"}, "invalid subject"),
        ({"operation": "js_get_msg", "stream": "s", "seq": "one"}, "needs a number for `seq`"),
    ],
)
async def test_a_mistake_in_the_task_is_told(
    nats_tool: NatsTool, nats_credential: OpenCredential, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words) as raised:
        await nats_tool.run(call("nats", parameters, credentials={"": nats_credential}))

    assert raised.value.failure.kind == "client_error"


async def test_without_an_address_the_failure_says_where_to_put_one(nats_tool: NatsTool) -> None:
    with pytest.raises(ToolFailed, match="NATS has no address"):
        await nats_tool.run(call("nats", {"operation": "kv_get", "bucket": "b", "key": "k"}))


async def test_a_wrong_password_is_refused_and_not_repeated(
    nats_tool: NatsTool, nats_server: NatsServer
) -> None:
    wrong = credential("bad", url=nats_server.url, user="noetl", password="hunter22")
    given = {"operation": "kv_get", "bucket": "b", "key": "k"}

    with pytest.raises(ToolFailed) as raised:
        await nats_tool.run(call("nats", given, credentials={"": wrong}))

    failure = raised.value.failure
    assert (failure.kind, failure.retryable) == ("auth", False)
    assert "hunter22" not in failure.message


async def test_a_server_that_is_not_there_may_come_back(nats_tool: NatsTool) -> None:
    [port] = free_ports(1)
    url = f"nats://someone:hunter22@{LOOPBACK}:{port}"

    with pytest.raises(ToolFailed) as raised:
        await nats_tool.run(
            call("nats", {"operation": "js_stream_info", "stream": "s", "url": url})
        )

    failure = raised.value.failure
    assert (failure.kind, failure.retryable) == ("connection", True)
    assert "hunter22" not in failure.message


async def test_parameters_beside_the_operation_win_over_the_credential(
    nats_tool: NatsTool, nats_server: NatsServer, fresh_name: str
) -> None:
    stored = credential("bad", nats_url="nats://127.0.0.1:1", user="nobody", password="wrong")
    given = {
        "operation": "kv_get",
        "bucket": fresh_name,
        "key": "k",
        "url": nats_server.url,
        "user": nats_server.user,
        "password": nats_server.password,
    }

    result = await nats_tool.run(call("nats", given, credentials={"": stored}))

    assert result.value["status"] == "not_found"


async def test_calls_share_one_connection_and_a_lost_one_is_made_again(
    tmp_path: Path, nats_tool: NatsTool
) -> None:
    with NatsServer(tmp_path / "own") as server:
        given = {
            "operation": "kv_get",
            "bucket": "b",
            "key": "k",
            "url": server.url,
            "user": server.user,
            "password": server.password,
        }
        await asyncio.gather(*(nats_tool.run(call("nats", given)) for _ in range(5)))
        kept = list(nats_tool._connections._kept.values())
        server.kill()
        with pytest.raises(ToolFailed) as raised:
            await nats_tool.run(call("nats", given))
        server.start()
        again = await nats_tool.run(call("nats", given))

    assert len(kept) == 1
    assert raised.value.failure.kind == "connection"
    assert again.value["status"] == "not_found"


async def test_a_server_that_dies_under_a_call_fails_that_call(
    tmp_path: Path, nats_tool: NatsTool
) -> None:
    with NatsServer(tmp_path / "own") as server:
        whose = {"url": server.url, "user": server.user, "password": server.password}
        client = await nats_tool._connections.get(nats_fields(whose))
        await client.jetstream().add_stream(name="s", subjects=["s"])
        given = {"operation": "js_consume", "stream": "s", "consumer": "w", "timeout_ms": 60_000}
        waiting = asyncio.create_task(nats_tool.run(call("nats", given | whose)))
        while not any(sub._pending_next_msgs_calls for sub in client._subs.values()):
            await asyncio.wait([waiting], timeout=0.001)
        server.kill()
        with pytest.raises(ToolFailed) as raised:
            await waiting

    assert raised.value.failure.kind == "connection"


async def test_a_call_that_takes_too_long_leaves_nothing_behind(
    nats_tool: NatsTool,
    nats_credential: OpenCredential,
    fresh_name: str,
    jetstream: JetStreamContext,
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[fresh_name])
    given = {"operation": "js_consume", "stream": fresh_name, "consumer": "w", "timeout_ms": 60_000}

    with pytest.raises(ToolFailed) as raised:
        await nats_tool.run(
            call("nats", given, credentials={"": nats_credential}, timeout_seconds=0.2)
        )

    assert raised.value.failure.kind == "timeout"
    [client] = nats_tool._connections._kept.values()
    await client.flush()
    # The one that is left takes the answers to requests.
    assert [sub.subject for sub in client._subs.values() if "_INBOX" not in sub.subject] == []
    assert len(client._subs) <= 1
