"""Where a task's Python code is: in the playbook, in a file or behind a URL."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from noetl.tools.failures import failed

SOURCE_BYTES_MAX = 1_000_000
FETCH_SECONDS = 30.0
SUPPORTED = "inline, file and http"


async def source_of(parameters: Mapping[str, Any]) -> str:
    code = parameters.get("code")
    if isinstance(code, str) and code.strip():
        return code
    script = parameters.get("script")
    if not isinstance(script, Mapping):
        raise failed("client_error", "a python task needs code, or a script with a source")
    uri = str(script.get("uri") or "")
    source = script.get("source") or {}
    if not isinstance(source, Mapping):
        raise failed(
            "client_error", "the source of a script must be a map: {type, code or endpoint}"
        )
    kind = source.get("type") or ("http" if uri.startswith(("http://", "https://")) else "file")
    if kind == "inline":
        return _inline(source)
    if kind == "file":
        return await asyncio.to_thread(_read, uri.removeprefix("file://"))
    if kind == "http":
        return await _fetch(uri, source)
    raise failed(
        "client_error", f"a script of type {kind} cannot be read; supported are {SUPPORTED}"
    )


def _inline(source: Mapping[str, Any]) -> str:
    code = source.get("code")
    if not isinstance(code, str):
        raise failed("client_error", "a script of type inline needs its code in source.code")
    return code


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(SOURCE_BYTES_MAX + 1)
    except OSError as error:
        kind = "not_found" if isinstance(error, FileNotFoundError) else "storage_access"
        raise failed(kind, f"the script {path} cannot be read: {error.strerror}") from error
    return _text(data, path)


async def _fetch(uri: str, source: Mapping[str, Any]) -> str:
    url = uri if "://" in uri else f"{str(source.get('endpoint') or '').rstrip('/')}/{uri}"
    method = str(source.get("method") or "GET")
    aiohttp = import_module("aiohttp")  # slow to import, and few scripts are fetched
    limit = aiohttp.ClientTimeout(total=_seconds(source.get("timeout")))
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.request(method, url) as response,
        ):
            status = response.status
            data = await response.content.read(SOURCE_BYTES_MAX + 1)
            while len(data) <= SOURCE_BYTES_MAX and not response.content.at_eof():
                data += await response.content.read(SOURCE_BYTES_MAX + 1)
    except TimeoutError as error:
        raise failed("timeout", f"the script did not come within {limit.total:g} s") from error
    except (aiohttp.ClientError, ValueError) as error:
        raise failed(
            "connection", f"the script cannot be fetched: {type(error).__name__}"
        ) from error
    if status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        raise failed(
            _kind_of(status), f"the script cannot be fetched: HTTP {status}", code=str(status)
        )
    return _text(data, "fetched")


def _seconds(given: Any) -> float:
    try:
        return float(given or FETCH_SECONDS)
    except (TypeError, ValueError) as error:
        raise failed("client_error", "the timeout of a script must be a number") from error


def _kind_of(status: int) -> str:
    if status >= 500:  # noqa: PLR2004 - where the server's own begin
        return "server_error"
    return {401: "auth", 403: "auth", 404: "not_found", 429: "rate_limit"}.get(
        status, "client_error"
    )


def _text(data: bytes, name: str) -> str:
    if len(data) > SOURCE_BYTES_MAX:
        raise failed("schema", f"the script {name} is longer than {SOURCE_BYTES_MAX} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise failed("parse", f"the script {name} is not text in UTF-8") from error
