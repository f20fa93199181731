"""Secrets in other clothes, and secrets on their way into another log."""

from typing import Any

import pytest

from noetl.pipeline.sensitive import SecretsSeen, secrets_of
from noetl.ports.tool import ToolCall
from noetl.templates.secret import scrub
from tests.unit.pipeline.rows import FunctionTool, House, job

WORD = "Correct-Horse/9"


@pytest.mark.parametrize(
    "dressed", ["correct-horse/9", "CORRECT-HORSE/9", "Q29ycmVjdC1Ib3JzZS85", "Correct-Horse%2F9"]
)
def test_what_templates_make_of_a_secret_is_taken_out_too(dressed: str) -> None:
    seen = SecretsSeen()
    seen.add(secrets_of({"token": WORD}))
    assert dressed not in seen.scrub({"text": f"got {dressed}!"})["text"]


async def test_a_secret_is_not_passed_to_a_sub_playbook() -> None:
    calls: list[ToolCall] = []

    def start(call: ToolCall) -> Any:
        calls.append(call)

    house = House(playbook=FunctionTool(start))
    await house.keep("api", {"token": WORD})
    ended = await house.run(
        job(
            "- step: s\n  tool: {kind: playbook, path: p, input: {key: '{{ keychain.k.token }}'}}",
            "keychain: [{name: k, kind: credential, credential: api}]\n",
        )
    )
    assert calls == []
    assert ended.error is not None
    assert "let the child look it up" in ended.error.message
    assert WORD not in str(ended)


def test_ordinary_words_survive_a_short_secret_in_another_case() -> None:
    assert scrub("a summer day", secrets_of({"password": "Summer"})) == "a summer day"
    long = secrets_of({"password": "Summer-of-69"})
    assert scrub("SUMMER-OF-69", long) == "***"
