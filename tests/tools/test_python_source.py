"""Code may be in the playbook, in a file or behind a URL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from noetl.ports.tool import ToolFailed
from noetl.tools.python_source import SOURCE_BYTES_MAX, source_of

CODE = "result = 1\n"


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        status = int(request.match_info["status"])
        return web.Response(status=status, text=CODE * (SOURCE_BYTES_MAX if status == 202 else 1))

    application = web.Application()
    application.router.add_get("/{status}/task.py", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_code_comes_before_a_script() -> None:
    assert await source_of({"code": CODE, "script": {"uri": "elsewhere"}}) == CODE


async def test_a_script_can_be_inline() -> None:
    assert await source_of({"script": {"source": {"type": "inline", "code": CODE}}}) == CODE


@pytest.mark.parametrize("prefix", ["", "file://"])
async def test_a_script_can_be_a_file(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "task.py"
    path.write_text(CODE)

    script = {"uri": f"{prefix}{path}", "source": {"type": "file"}}
    assert await source_of({"script": script}) == CODE
    assert await source_of({"script": {"uri": f"{prefix}{path}"}}) == CODE


async def test_a_script_can_be_fetched(address: str) -> None:
    whole = {"uri": f"{address}/200/task.py", "source": {"type": "http"}}
    parts = {"uri": "200/task.py", "source": {"type": "http", "endpoint": address, "timeout": 5}}

    assert await source_of({"script": whole}) == CODE
    assert await source_of({"script": parts}) == CODE


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, "not_found"),
        (403, "auth"),
        (429, "rate_limit"),
        (503, "server_error"),
        (418, "client_error"),
        (202, "schema"),
    ],
)
async def test_t1_a_script_that_is_not_given_says_why(address: str, status: int, kind: str) -> None:
    with pytest.raises(ToolFailed) as raised:
        await source_of({"script": {"uri": f"{address}/{status}/task.py"}})

    assert raised.value.failure.kind == kind


async def test_t1_a_server_that_is_not_there_is_a_connection_failure() -> None:
    with pytest.raises(ToolFailed) as raised:
        await source_of({"script": {"uri": "http://127.0.0.1:1/task.py"}})

    assert raised.value.failure.kind == "connection"


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({}, "client_error", "needs code"),
        ({"code": " "}, "client_error", "needs code"),
        ({"script": {"source": {"type": "inline"}}}, "client_error", "source.code"),
        ({"script": {"source": "gcs"}}, "client_error", "must be a map"),
        (
            {"script": {"uri": "http://127.0.0.1:1/", "source": {"timeout": "soon"}}},
            "client_error",
            "must be a number",
        ),
        ({"script": {"uri": "/no/such.py"}}, "not_found", "/no/such.py"),
        ({"script": {"uri": "/"}}, "storage_access", "cannot be read"),
        (
            {"script": {"uri": "gs://b/x.py", "source": {"type": "gcs"}}},
            "client_error",
            "type gcs cannot be read; supported are inline, file and http",
        ),
    ],
)
async def test_t1_a_script_that_cannot_be_read_says_what_to_do(
    parameters: dict[str, object], kind: str, message: str
) -> None:
    with pytest.raises(ToolFailed, match=message) as raised:
        await source_of(parameters)

    assert raised.value.failure.kind == kind


async def test_t1_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "task.py"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ToolFailed, match="not text in UTF-8"):
        await source_of({"script": {"uri": str(path)}})
