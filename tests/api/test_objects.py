"""Objects over HTTP, as a program in any language asks for them."""

import io

import pytest

from noetl.api.route import BODY_BYTES_MAX
from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.instant import plus
from noetl.kernel.stage_token import StageGrant, stage_token
from tests.api.running import Answer, Api

PATH = "/api/internal/objects/noetl/env=dev/one%2525.json"
KEY = "noetl/env=dev/one%25.json"


async def call(api: Api, method: str, path: str = PATH, data: bytes | None = None) -> Answer:
    return await api.call(method, path, headers=api.as_worker, data=data)


async def test_an_object_is_put_and_got_and_looked_at(api: Api) -> None:
    stored = await call(api, "PUT", data=b"some bytes")
    assert (stored.status, stored.body["key"], stored.body["byte_length"]) == (200, KEY, 10)
    assert (await call(api, "GET")).body == "some bytes"
    assert (await call(api, "GET", f"{PATH}?start=5&length=100")).body == "bytes"
    head = await call(api, "HEAD")
    assert (head.status, head.headers["Content-Length"]) == (200, "10")
    assert head.headers["Last-Modified"].endswith("GMT")
    listed = await call(api, "GET", "/api/internal/objects?prefix=noetl/")
    assert [each["key"] for each in listed.body] == [KEY]
    assert (await call(api, "DELETE")).status == 200
    assert (await call(api, "HEAD")).status == 404


async def test_an_object_never_changes(api: Api) -> None:
    await call(api, "PUT", data=b"some bytes")
    assert (await call(api, "PUT", data=b"some bytes")).status == 200
    answer = await call(api, "PUT", data=b"others")
    assert (answer.status, answer.body["code"]) == (409, "object_differs")
    assert answer.body["facts"].keys() == {"url", "stored", "given"}
    assert (await call(api, "PUT", f"{PATH}?replace=true", b"others")).status == 200
    assert (await call(api, "GET")).body == "others"


async def test_what_is_missing_and_what_is_no_key_are_told(api: Api) -> None:
    answer = await call(api, "GET")
    assert (answer.status, answer.body["code"]) == (404, "object_missing")
    for method in ("GET", "PUT", "DELETE"):
        answer = await call(api, method, "/api/internal/objects/a%20b")
        assert (answer.status, answer.body["code"]) == (422, "object_key_invalid")
    answer = await call(api, "GET", f"{PATH}?start=-1")
    assert (answer.status, answer.body["code"]) == (422, "request_invalid")


async def test_a_large_object_needs_no_small_body(api: Api) -> None:
    size = BODY_BYTES_MAX + 1
    data = io.BytesIO(b"x" * size)
    stored = await api.call("PUT", PATH, headers=api.as_worker, data=data)
    assert stored.body["byte_length"] == size
    assert len((await call(api, "GET")).body) == size


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_only_workers_are_let_in(api: Api, method: str) -> None:
    assert (await api.call(method, PATH)).status == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH),
        ("HEAD", PATH),
        ("PUT", PATH),
        ("PUT", f"{PATH}?replace=true"),
        ("PUT", "/api/internal/objects/noetl/new.json"),
        ("DELETE", PATH),
        ("GET", "/api/internal/objects?prefix=noetl/"),
    ],
)
async def test_the_token_of_a_stage_opens_no_object(api: Api, method: str, path: str) -> None:
    """Slots have the store itself; here are the objects of every execution and tenant."""
    await call(api, "PUT", data=b"some bytes")
    until = plus(api.engine.clock.now(), seconds=60)
    grant = StageGrant(execution_id=ExecutionId("1"), stage_id=StageId("2"), expires_at=until)
    headers = {"Authorization": f"Bearer {stage_token(api.internal_key, grant)}"}
    answer = await api.call(method, path, headers=headers, data=b"others")
    assert answer.status == 403
    assert method == "HEAD" or answer.body["code"] == "stage_only"
    assert (await call(api, "GET")).body == "some bytes"
    listed = await call(api, "GET", "/api/internal/objects?prefix=noetl/")
    assert [each["key"] for each in listed.body] == [KEY]
