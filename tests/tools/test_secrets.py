"""A secret is looked up in the call's own credentials, and in nothing else by accident."""

from pathlib import Path
from typing import Any

import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.secrets import FILE_BYTES_MAX, SecretsTool
from tests.tools.tool_calls import call, credential, services

STRIPE = credential("stripe", api_key="sk-1", account={"id": "a-1"})
ONLY = credential("plain", token="t-1")


async def looked_up(folder: Path, parameters: dict[str, Any], **credentials: Any) -> Any:
    given = {alias or "": value for alias, value in credentials.items()}
    tool = SecretsTool(services(folder))
    return (await tool.run(call("secrets", parameters, credentials=given))).value


@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ({"name": "stripe", "path": "api_key"}, "sk-1"),
        ({"name": "stripe"}, "sk-1"),
        ({"name": "stripe", "path": "account.id"}, "a-1"),
        ({"name": "pay", "path": "account"}, {"id": "a-1"}),
        ({"name": "plain"}, "t-1"),
    ],
)
async def test_a_field_of_the_named_credential_is_the_result(
    tmp_path: Path, parameters: dict[str, Any], value: Any
) -> None:
    assert await looked_up(tmp_path, parameters, pay=STRIPE, other=ONLY) == value


async def test_the_only_credential_is_asked_for_the_named_field(tmp_path: Path) -> None:
    assert await looked_up(tmp_path, {"name": "api_key"}, only=STRIPE) == "sk-1"


async def test_a_missing_field_lists_the_fields_but_no_value(tmp_path: Path) -> None:
    with pytest.raises(
        ToolFailed, match="'stripe' has no field 'token'; it has account or api_"
    ) as (raised):
        await looked_up(tmp_path, {"name": "stripe", "path": "token"}, only=STRIPE)

    assert raised.value.failure.kind == "not_found"
    assert "sk-1" not in raised.value.failure.message


async def test_without_a_credential_the_failure_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="`auth: NAME`"):
        await looked_up(tmp_path, {"name": "stripe"})


@pytest.mark.parametrize("provider", ["env", "gcp", "vault"])
async def test_an_unknown_provider_names_those_there_are(tmp_path: Path, provider: str) -> None:
    with pytest.raises(ToolFailed, match="use credential or file"):
        await looked_up(tmp_path, {"name": "x", "provider": provider}, only=ONLY)


async def test_a_file_holds_a_secret_up_to_its_last_line_break(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("s3cret\n")

    assert await looked_up(tmp_path, {"provider": "file", "path": str(file)}) == "s3cret"


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (None, "not_found", "No such file"),
        (b"\xff\xfe", "storage_access", "not UTF-8"),
        (b"x" * (FILE_BYTES_MAX + 1), "storage_access", "larger than"),
    ],
)
async def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, content: bytes | None, kind: str, words: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ToolFailed, match=words) as raised:
        await looked_up(tmp_path, {"provider": "file", "path": str(file)})

    assert raised.value.failure.kind == kind


async def test_a_file_needs_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="needs its whole path"):
        await looked_up(tmp_path, {"provider": "file", "path": "key"})


def test_looking_changes_nothing(tmp_path: Path) -> None:
    assert not SecretsTool(services(tmp_path)).has_effect({"name": "x"})
