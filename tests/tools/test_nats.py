"""The NATS tool against a real server: keys, objects and messages."""

import base64
from typing import Any

import pytest
from nats.js import JetStreamContext

from noetl.ports.tool import ToolFailed
from noetl.tools.nats import OPERATIONS, NatsTool
from tests.tools.nats_fixtures import *  # noqa: F403 - fixtures are found by name
from tests.tools.nats_fixtures import Run

pytestmark = pytest.mark.servers


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
async def test_a_value_that_was_put_is_got(
    run_nats: Run, fresh_name: str, put: Any, got: Any
) -> None:
    stored = await run_nats("kv_put", bucket=fresh_name, key="a/b.c", value=put)
    found = await run_nats("kv_get", bucket=fresh_name, key="a/b.c")

    names = {"status": "success", "bucket": fresh_name, "key": "a/b.c"}
    assert stored == {**names, "revision": 1}
    assert {**found, "created": None} == {**names, "value": got, "revision": 1, "created": None}
    assert found["created"].startswith("20")


async def test_a_key_or_bucket_that_is_not_there_is_a_result(
    run_nats: Run, fresh_name: str
) -> None:
    missing = {"status": "not_found", "bucket": fresh_name, "key": "k", "value": None}
    assert await run_nats("kv_get", bucket=fresh_name, key="k") == missing
    assert (await run_nats("kv_keys", bucket=fresh_name))["status"] == "not_found"
    assert (await run_nats("kv_delete", bucket=fresh_name, key="k"))["status"] == "not_found"

    await run_nats("kv_put", bucket=fresh_name, key="other", value="x")

    assert await run_nats("kv_get", bucket=fresh_name, key="k") == missing


@pytest.mark.parametrize("operation", ["kv_delete", "kv_purge"])
async def test_a_key_that_was_removed_is_gone(
    run_nats: Run, fresh_name: str, operation: str
) -> None:
    await run_nats("kv_put", bucket=fresh_name, key="k", value="x")
    await run_nats("kv_put", bucket=fresh_name, key="stays", value="x", cycle="another")

    removed = await run_nats(operation, bucket=fresh_name, key="k", cycle="later")

    assert removed == {"status": "success", "bucket": fresh_name, "key": "k"}
    assert (await run_nats("kv_get", bucket=fresh_name, key="k"))["status"] == "not_found"
    assert (await run_nats("kv_keys", bucket=fresh_name))["keys"] == ["stays"]


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
    run_nats: Run, fresh_name: str, pattern: str | None, keys: list[str]
) -> None:
    for key in ("user.1", "user.2.name", "user_42_b", "user_42_a"):
        await run_nats("kv_put", bucket=fresh_name, key=key, value="x", cycle=key)

    listed = await run_nats("kv_keys", bucket=fresh_name, pattern=pattern)

    assert listed == {"status": "success", "bucket": fresh_name, "keys": keys, "count": len(keys)}


async def test_a_cycle_that_runs_again_puts_and_publishes_once(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    sent = {"stream": fresh_name, "subject": f"{fresh_name}.one", "data": {"n": 1}}

    first = await run_nats("js_publish", **sent)
    again = await run_nats("js_publish", **sent)
    other = await run_nats("js_publish", **sent, cycle="another")

    assert first == {"status": "success", "stream": fresh_name, "seq": 1, "duplicate": False}
    assert again == first | {"duplicate": True}
    assert other["seq"] == 2
    puts = [await run_nats("kv_put", bucket=fresh_name, key="k", value="v") for _ in range(2)]
    assert [put["revision"] for put in puts] == [1, 1]


async def test_a_value_with_a_lifetime_ends(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await run_nats("kv_put", bucket=fresh_name, key="k", value="x", ttl="90")

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
        ("", None, None),
    ],
)
async def test_an_object_that_was_put_is_got(
    run_nats: Run, fresh_name: str, data: Any, encoding: str | None, got: Any
) -> None:
    where = {"bucket": fresh_name, "name": "a report/2026.json", "encoding": encoding}

    stored = await run_nats("object_put", **where, data=data)
    found = await run_nats("object_get", **where)
    info = await run_nats("object_info", **where)

    assert stored["status"] == "success"
    assert found["data"] == (data if got is None else got)
    assert found["size"] == stored["size"] == info["size"]
    assert stored["digest"] == info["digest"]
    assert info["digest"].startswith("SHA-256=")


async def test_a_damaged_object_is_not_given(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await run_nats("object_put", bucket=fresh_name, name="o", data="abc")
    info = await (await jetstream.object_store(fresh_name)).get_info("o")
    await jetstream.purge_stream(f"OBJ_{fresh_name}", subject=f"$O.{fresh_name}.C.{info.nuid}")
    await jetstream.publish(f"$O.{fresh_name}.C.{info.nuid}", b"abd")

    with pytest.raises(ToolFailed, match="is damaged") as raised:
        await run_nats("object_get", bucket=fresh_name, name="o")

    assert raised.value.failure.kind == "storage_access"


async def test_objects_are_listed_and_deleted(run_nats: Run, fresh_name: str) -> None:
    assert (await run_nats("object_list", bucket=fresh_name))["status"] == "not_found"
    for name in ("b", "a", "c"):
        await run_nats("object_put", bucket=fresh_name, name=name, data=name)

    gone = await run_nats("object_delete", bucket=fresh_name, name="b")
    listed = await run_nats("object_list", bucket=fresh_name)

    assert gone == {"status": "success", "bucket": fresh_name, "name": "b"}
    assert [each["name"] for each in listed["objects"]] == ["a", "c"]
    assert listed["count"] == 2
    for operation in ("object_get", "object_info", "object_delete"):
        assert (await run_nats(operation, bucket=fresh_name, name="b"))["status"] == "not_found"


async def test_messages_are_looked_at_by_number_subject_or_last(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    empty = await run_nats("js_get_msg", stream=fresh_name, last=True)
    for number, subject in enumerate(("a", "b"), start=1):
        await run_nats(
            "js_publish",
            subject=f"{fresh_name}.{subject}",
            data={"n": number},
            headers={"X-Kind": subject},
            cycle=subject,
        )

    first = await run_nats("js_get_msg", stream=fresh_name, seq="1")
    by_subject = await run_nats("js_get_msg", stream=fresh_name, subject=f"{fresh_name}.a")
    last = await run_nats("js_get_msg", stream=fresh_name, last="true")

    assert empty == {"status": "not_found", "stream": fresh_name}
    assert first == by_subject
    assert (first["seq"], first["data"], first["subject"]) == (1, {"n": 1}, f"{fresh_name}.a")
    assert first["headers"] == {"X-Kind": "a", "Nats-Msg-Id": "a"}
    assert (last["seq"], last["data"]) == (2, {"n": 2})
    assert (await run_nats("js_get_msg", stream=fresh_name, seq=9))["status"] == "not_found"


async def test_a_stream_tells_about_itself(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    assert (await run_nats("js_stream_info", stream=fresh_name))["status"] == "not_found"
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    await jetstream.publish(f"{fresh_name}.a", b"x")

    info = await run_nats("js_stream_info", stream=fresh_name)

    assert info["config"]["subjects"] == [f"{fresh_name}.>"]
    assert (info["config"]["retention"], info["config"]["storage"]) == ("limits", "file")
    assert (info["state"]["messages"], info["state"]["last_seq"]) == (1, 1)


async def test_acknowledged_messages_come_once_and_others_again(
    run_nats: Run, fresh_name: str, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name=fresh_name, subjects=[f"{fresh_name}.>"])
    for number in range(3):
        await jetstream.publish(f"{fresh_name}.a", b'{"n": %d}' % number)
    await jetstream.publish(f"{fresh_name}.b", b"other")
    where = {"stream": fresh_name, "consumer": "worker", "subject": f"{fresh_name}.a"}

    taken = await run_nats("js_consume", **where, batch=2, timeout_ms=2000)
    rest = await run_nats("js_consume", **where, batch=1, timeout_ms=2000, ack=False)
    nothing = await run_nats("js_consume", **where, batch=5, timeout_ms=50)

    assert [message["data"] for message in taken["messages"]] == [{"n": 0}, {"n": 1}]
    assert [message["seq"] for message in taken["messages"]] == [1, 2]
    assert [message["data"] for message in rest["messages"]] == [{"n": 2}]
    assert nothing["messages"] == []
    assert nothing["count"] == 0
    consumer = await jetstream.consumer_info(fresh_name, "worker")
    assert consumer.num_ack_pending == 1
    assert consumer.num_pending == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_what_changes_something_has_an_effect(nats_tool: NatsTool, operation: str) -> None:
    reads = {"kv_get", "kv_keys", "object_get", "object_list", "object_info"}
    reads |= {"js_get_msg", "js_stream_info"}

    assert nats_tool.has_effect({"operation": operation}) is (operation not in reads)
    assert not nats_tool.has_effect({"operation": "js_consume", "ack": "false"})
