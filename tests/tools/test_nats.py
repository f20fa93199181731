"""The NATS tool against a real server: keys, objects, messages, and what can go wrong."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.js import JetStreamContext

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolFailed
from noetl.servers.nats import NatsServer
from noetl.servers.process import LOOPBACK, free_ports
from noetl.tools.credential_fields import nats_fields
from noetl.tools.nats import OPERATIONS, NatsTool
from tests.tools.nats_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.tool_calls import KEY, call, credential, services

pytestmark = pytest.mark.servers

Run = Callable[..., Awaitable[Any]]


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[NatsTool]:
    opened = NatsTool(services(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def run(tool: NatsTool, nats_credential: OpenCredential) -> Run:
    async def run_one(operation: str, *, cycle: str = KEY, **parameters: Any) -> Any:
        given = call(
            "nats",
            {"operation": operation, **parameters},
            credentials={"": nats_credential},
            idempotency_key=cycle,
        )
        return (await tool.run(given)).value

    return run_one


@pytest.mark.parametrize(
    ("put", "got"),
    [
        ({"user": 42, "tags": ["a"]}, {"user": 42, "tags": ["a"]}),
        ([1, 2], [1, 2]),
        ("text", "text"),
        ("{not json", "{not json"),
        ("", ""),
        (7, "7"),
    ],
)
async def test_a_value_that_was_put_is_got(run: Run, fresh_name: str, put: Any, got: Any) -> None:
    stored = await run("kv_put", bucket=fresh_name, key="a/b.c", value=put)
    found = await run("kv_get", bucket=fresh_name, key="a/b.c")

    names = {"status": "success", "bucket": fresh_name, "key": "a/b.c"}
    assert stored == {**names, "revision": 1}
    assert {**found, "created": None} == {**names, "value": got, "revision": 1, "created": None}
    assert found["created"].startswith("20")


async def test_a_key_or_bucket_that_is_not_there_is_a_result(run: Run, fresh_name: str) -> None:
    missing = {"status": "not_found", "bucket": fresh_name, "key": "k", "value": None}
    assert await run("kv_get", bucket=fresh_name, key="k") == missing
    assert (await run("kv_keys", bucket=fresh_name))["status"] == "not_found"
    assert (await run("kv_delete", bucket=fresh_name, key="k"))["status"] == "not_found"

    await run("kv_put", bucket=fresh_name, key="other", value="x")

    assert await run("kv_get", bucket=fresh_name, key="k") == missing


@pytest.mark.parametrize("operation", ["kv_delete", "kv_purge"])
async def test_a_key_that_was_removed_is_gone(run: Run, fresh_name: str, operation: str) -> None:
    await run("kv_put", bucket=fresh_name, key="k", value="x")
    await run("kv_put", bucket=fresh_name, key="stays", value="x", cycle="another")

    removed = await run(operation, bucket=fresh_name, key="k", cycle="later")

    assert removed == {"status": "success", "bucket": fresh_name, "key": "k"}
    assert (await run("kv_get", bucket=fresh_name, key="k"))["status"] == "not_found"
    assert (await run("kv_keys", bucket=fresh_name))["keys"] == ["stays"]


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        (None, ["user.1", "user.2.name", "user_42_a", "user_42_b"]),
        ("user.*", ["user.1"]),
        ("user.>", ["user.1", "user.2.name"]),
        ("user_42_*", ["user_42_a", "user_42_b"]),
        ("nobody", []),
    ],
)
async def test_keys_are_listed_by_pattern(
    run: Run, fresh_name: str, pattern: str | None, keys: list[str]
) -> None:
    for key in ("user.1", "user.2.name", "user_42_b", "user_42_a"):
        await run("kv_put", bucket=fresh_name, key=key, value="x", cycle=key)

    listed = await run("kv_keys", bucket=fresh_name, pattern=pattern)

    assert listed == {"status": "success", "bucket": fresh_name, "keys": keys, "count": len(keys)}


async def test_a_cycle_that_runs_again_puts_and_publishes_once(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    sent = {"stream": fresh_name, "subject": f"{fresh_name}.one", "data": {"n": 1}}

    first = await run("js_publish", **sent)
    again = await run("js_publish", **sent)
    other = await run("js_publish", **sent, cycle="another")

    assert first == {"status": "success", "stream": fresh_name, "seq": 1, "duplicate": False}
    assert again == first | {"duplicate": True}
    assert other["seq"] == 2
    puts = [await run("kv_put", bucket=fresh_name, key="k", value="v") for _ in range(2)]
    assert [put["revision"] for put in puts] == [1, 1]


async def test_a_value_with_a_lifetime_ends(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await run("kv_put", bucket=fresh_name, key="k", value="x", ttl="90")

    message = await jetstream.get_msg(f"KV_{fresh_name}", seq=1)

    assert message.headers is not None
    assert message.headers["Nats-TTL"] == "90"


@pytest.mark.parametrize(
    ("data", "encoding", "got"),
    [
        ("täxt", "utf-8", "täxt"),
        ('{"a": 1}', None, '{"a": 1}'),
        ({"a": 1}, None, {"a": 1}),
        (base64.b64encode(bytes(range(256))).decode(), "base64", None),
        ("x" * 400_000, None, None),
    ],
)
async def test_an_object_that_was_put_is_got(
    run: Run, fresh_name: str, data: Any, encoding: str | None, got: Any
) -> None:
    where = {"bucket": fresh_name, "name": "a report/2026.json", "encoding": encoding}

    stored = await run("object_put", **where, data=data)
    found = await run("object_get", **where)
    info = await run("object_info", **where)

    assert stored["status"] == "success"
    assert found["data"] == (data if got is None else got)
    assert found["size"] == stored["size"] == info["size"]
    assert stored["digest"] == info["digest"]
    assert info["digest"].startswith("SHA-256=")


async def test_objects_are_listed_and_deleted(run: Run, fresh_name: str) -> None:
    assert (await run("object_list", bucket=fresh_name))["status"] == "not_found"
    for name in ("b", "a", "c"):
        await run("object_put", bucket=fresh_name, name=name, data=name)

    gone = await run("object_delete", bucket=fresh_name, name="b")
    listed = await run("object_list", bucket=fresh_name)

    assert gone == {"status": "success", "bucket": fresh_name, "name": "b"}
    assert [each["name"] for each in listed["objects"]] == ["a", "c"]
    assert listed["count"] == 2
    for operation in ("object_get", "object_info", "object_delete"):
        assert (await run(operation, bucket=fresh_name, name="b"))["status"] == "not_found"


async def test_messages_are_looked_at_by_number_subject_or_last(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    empty = await run("js_get_msg", stream=fresh_name, last=True)
    for number, subject in enumerate(("a", "b"), start=1):
        await run(
            "js_publish",
            subject=f"{fresh_name}.{subject}",
            data={"n": number},
            headers={"X-Kind": subject},
            cycle=subject,
        )

    first = await run("js_get_msg", stream=fresh_name, seq="1")
    by_subject = await run("js_get_msg", stream=fresh_name, subject=f"{fresh_name}.a")
    last = await run("js_get_msg", stream=fresh_name, last="true")

    assert empty == {"status": "not_found", "stream": fresh_name}
    assert first == by_subject
    assert (first["seq"], first["data"], first["subject"]) == (1, {"n": 1}, f"{fresh_name}.a")
    assert first["headers"] == {"X-Kind": "a", "Nats-Msg-Id": "a"}
    assert (last["seq"], last["data"]) == (2, {"n": 2})
    assert (await run("js_get_msg", stream=fresh_name, seq=9))["status"] == "not_found"


async def test_a_stream_tells_about_itself(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    assert (await run("js_stream_info", stream=fresh_name))["status"] == "not_found"
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    await jetstream.publish(f"{fresh_name}.a", b"x")

    info = await run("js_stream_info", stream=fresh_name)

    assert info["config"]["subjects"] == [f"{fresh_name}.>"]
    assert (info["config"]["retention"], info["config"]["storage"]) == ("limits", "file")
    assert (info["state"]["messages"], info["state"]["last_seq"]) == (1, 1)


async def test_acknowledged_messages_come_once_and_others_again(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    for number in range(3):
        await jetstream.publish(f"{fresh_name}.a", b'{"n": %d}' % number)
    await jetstream.publish(f"{fresh_name}.b", b"other")
    where = {"stream": fresh_name, "consumer": "worker", "subject": f"{fresh_name}.a"}

    taken = await run("js_consume", **where, batch=2, timeout_ms=2000)
    rest = await run("js_consume", **where, batch=1, timeout_ms=2000, ack=False)
    nothing = await run("js_consume", **where, batch=5, timeout_ms=50)

    assert [message["data"] for message in taken["messages"]] == [{"n": 0}, {"n": 1}]
    assert [message["seq"] for message in taken["messages"]] == [1, 2]
    assert [message["data"] for message in rest["messages"]] == [{"n": 2}]
    assert nothing["messages"] == []
    assert nothing["count"] == 0
    consumer = await jetstream.consumer_info(fresh_name, "worker")
    assert consumer.num_ack_pending == 1
    assert consumer.num_pending == 0


async def test_taking_from_a_stream_that_is_not_there_fails(run: Run, fresh_name: str) -> None:
    with pytest.raises(ToolFailed) as raised:
        await run("js_consume", stream=fresh_name, consumer="worker")

    assert raised.value.failure.kind == "not_found"


async def test_a_subject_that_no_stream_takes_fails(run: Run, fresh_name: str) -> None:
    with pytest.raises(ToolFailed, match="no stream takes the subject") as raised:
        await run("js_publish", subject=f"{fresh_name}.a", data="x")

    assert raised.value.failure.kind == "not_found"


async def test_a_full_stream_says_so(
    run: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(
        name=fresh_name, subjects=[fresh_name], max_msgs=1, discard="new", max_bytes=-1
    )
    await run("js_publish", subject=fresh_name, data="x")

    with pytest.raises(ToolFailed) as raised:
        await run("js_publish", subject=fresh_name, data="y", cycle="another")

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
    tool: NatsTool, nats_credential: OpenCredential, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words) as raised:
        await tool.run(call("nats", parameters, credentials={"": nats_credential}))

    assert raised.value.failure.kind == "client_error"


async def test_without_an_address_the_failure_says_where_to_put_one(tool: NatsTool) -> None:
    with pytest.raises(ToolFailed, match="NATS has no address"):
        await tool.run(call("nats", {"operation": "kv_get", "bucket": "b", "key": "k"}))


async def test_a_wrong_password_is_refused_and_not_repeated(
    tool: NatsTool, nats_server: NatsServer
) -> None:
    wrong = credential("bad", url=nats_server.url, user="noetl", password="hunter22")
    given = {"operation": "kv_get", "bucket": "b", "key": "k"}

    with pytest.raises(ToolFailed) as raised:
        await tool.run(call("nats", given, credentials={"": wrong}))

    failure = raised.value.failure
    assert (failure.kind, failure.retryable) == ("auth", False)
    assert "hunter22" not in failure.message


async def test_a_server_that_is_not_there_may_come_back(tool: NatsTool) -> None:
    [port] = free_ports(1)
    url = f"nats://someone:hunter22@{LOOPBACK}:{port}"

    with pytest.raises(ToolFailed) as raised:
        await tool.run(call("nats", {"operation": "js_stream_info", "stream": "s", "url": url}))

    failure = raised.value.failure
    assert (failure.kind, failure.retryable) == ("connection", True)
    assert "hunter22" not in failure.message


async def test_parameters_beside_the_operation_win_over_the_credential(
    tool: NatsTool, nats_server: NatsServer, fresh_name: str
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

    result = await tool.run(call("nats", given, credentials={"": stored}))

    assert result.value["status"] == "not_found"


async def test_calls_share_one_connection_and_a_lost_one_is_made_again(
    tmp_path: Path, tool: NatsTool
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
        await asyncio.gather(*(tool.run(call("nats", given)) for _ in range(5)))
        kept = list(tool._connections._kept.values())
        server.kill()
        with pytest.raises(ToolFailed) as raised:
            await tool.run(call("nats", given))
        server.start()
        again = await tool.run(call("nats", given))

    assert len(kept) == 1
    assert raised.value.failure.kind == "connection"
    assert again.value["status"] == "not_found"


async def test_a_server_that_dies_under_a_call_fails_that_call(
    tmp_path: Path, tool: NatsTool
) -> None:
    with NatsServer(tmp_path / "own") as server:
        whose = {"url": server.url, "user": server.user, "password": server.password}
        client = await tool._connections.get(nats_fields(whose))
        await client.jetstream().add_stream(name="s", subjects=["s"])
        given = {"operation": "js_consume", "stream": "s", "consumer": "w", "timeout_ms": 60_000}
        waiting = asyncio.create_task(tool.run(call("nats", given | whose)))
        while not any(sub._pending_next_msgs_calls for sub in client._subs.values()):
            await asyncio.wait([waiting], timeout=0.001)
        server.kill()
        with pytest.raises(ToolFailed) as raised:
            await waiting

    assert raised.value.failure.kind == "connection"


async def test_a_call_that_takes_too_long_leaves_nothing_behind(
    tool: NatsTool, nats_credential: OpenCredential, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[fresh_name])
    given = {"operation": "js_consume", "stream": fresh_name, "consumer": "w", "timeout_ms": 60_000}

    with pytest.raises(ToolFailed) as raised:
        await tool.run(call("nats", given, credentials={"": nats_credential}, timeout_seconds=0.2))

    assert raised.value.failure.kind == "timeout"
    [client] = tool._connections._kept.values()
    await client.flush()
    # The one that is left takes the answers to requests.
    assert [sub.subject for sub in client._subs.values() if "_INBOX" not in sub.subject] == []
    assert len(client._subs) <= 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_what_changes_something_has_an_effect(tool: NatsTool, operation: str) -> None:
    reads = {"kv_get", "kv_keys", "object_get", "object_list", "object_info"}
    reads |= {"js_get_msg", "js_stream_info"}

    assert tool.has_effect({"operation": operation}) is (operation not in reads)
    assert not tool.has_effect({"operation": "js_consume", "ack": "false"})
