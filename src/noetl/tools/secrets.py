"""Look a secret up for the tasks that follow in the same pipeline.

The result is the secret itself, in the open, because a later task is to use it. It must not be
recorded: the interpreter takes the values of a call's credentials, and what this tool gave, out of
everything that leaves the pipeline. A later step sees `***`; it names the credential itself.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noetl.domain.credential import OpenCredential
from noetl.domain.playbook.wording import choices, shown
from noetl.ports.tool import ToolCall, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed

PROVIDERS = ("credential", "file")
FILE_BYTES_MAX = 64 * 1024

# The one that is meant when a credential has several fields and the task names none.
_USUAL_FIELDS = ("value", "secret", "token", "password", "api_key")


class SecretsTool:
    waits = False

    def __init__(self, services: ToolServices) -> None:
        del services  # a call brings its credentials along

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        del parameters
        return False

    async def run(self, call: ToolCall) -> ToolResult:
        provider = call.parameters.get("provider") or "credential"
        if provider == "credential":
            return ToolResult(value=_from_credential(call))
        if provider == "file":
            return ToolResult(value=await _from_file(call.parameters))
        raise failed(
            "client_error",
            f"there is no secret provider {shown(provider)!r}; use {choices(PROVIDERS)}, and"
            " add what is elsewhere as a credential: noetl credentials add NAME",
        )

    async def close(self) -> None:
        """Nothing is kept."""


def _from_credential(call: ToolCall) -> Any:
    name, path = _text(call.parameters, "name"), _text(call.parameters, "path")
    named = _credential_named(call, name)
    # `name` says which of several credentials is meant, or which field of the only one.
    credential, field = (named, path) if named else (call.credential, path or name)
    if credential is None:
        raise failed(
            "client_error",
            "the secrets tool has no credential to look into; name it: `auth: NAME`",
        )
    found = _at(credential.data, field) if field else _usual(credential)
    if found is None:
        raise failed(
            "not_found",
            f"the credential {shown(credential.name)!r} has no field {shown(field or '')!r};"
            f" it has {choices(sorted(credential.data)) or 'none'}: name one with `path`",
        )
    return found


def _text(parameters: Mapping[str, Any], name: str) -> str | None:
    given = parameters.get(name)
    if given is None or isinstance(given, str):
        return given or None
    raise failed("client_error", f"`{name}` of a secret must be text, not {type(given).__name__}")


def _credential_named(call: ToolCall, name: str | None) -> OpenCredential | None:
    for alias, credential in call.credentials.items():
        if name and name in (alias, credential.name):
            return credential
    return None


def _usual(credential: OpenCredential) -> Any:
    if len(credential.data) == 1:
        return next(iter(credential.data.values()))
    return next((credential.data[name] for name in _USUAL_FIELDS if name in credential.data), None)


def _at(data: Any, path: str) -> Any:
    """`a.b` is the field b of a, unless a field has that very name."""
    if isinstance(data, dict) and path in data:
        return data[path]
    for part in path.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


async def _from_file(parameters: Mapping[str, Any]) -> str:
    path = Path(_text(parameters, "path") or _text(parameters, "name") or "")
    if not path.is_absolute():
        raise failed("client_error", f"the secret file {shown(path)!r} needs its whole path")
    try:
        return await asyncio.to_thread(_read, path)
    except (OSError, UnicodeDecodeError) as error:
        kind = "not_found" if isinstance(error, FileNotFoundError) else "storage_access"
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise failed(kind, f"the secret file {shown(path)!r} cannot be read: {reason}") from error


def _read(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise OSError(0, f"it is larger than {FILE_BYTES_MAX} bytes")
    # Editors end a file with a line break that is no part of the secret.
    return content.decode().removesuffix("\n")
