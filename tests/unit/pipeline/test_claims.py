"""The claim of a cursor, rendered: with the names of its step, and with credentials."""

from typing import Any

import pytest

from noetl.pipeline.claims import PreparedClaim
from noetl.ports.tool import ToolFailed
from noetl.templates.errors import TemplateError
from tests.unit.pipeline.rows import House, job

CURSOR = """
- step: each
  input: {least: "{{ ctx.floor + 1 }}"}
  loop:
    cursor:
      kind: postgres
      auth: "{{ workload.login }}"
      database: "db_{{ workload.login }}"
      claim: CLAIM
    iterator: row
    spec: {mode: cursor}
  tool: {kind: noop}
"""
POLICY: dict[str, Any] = {"max_rows": 50, "process": "row"}


async def prepared(claim: str, house: House | None = None, **facts: Any) -> PreparedClaim:
    house = house or House()
    await house.keep("pg", {"host": "h", "user": "u", "password": "pass-word-4711"}, "postgres")
    given = {"workload": {"login": "pg"}, "ctx": {"floor": 6}, **facts}
    return await house.interpreter.claim(job(CURSOR.replace("CLAIM", claim), **given), POLICY, "w7")


async def test_it_sees_how_large_the_frame_may_be_and_who_asks() -> None:
    claim = '"LIMIT {{ __frame_max_rows | default(1) | int }} {{ __frame_policy.process }}'
    made = await prepared(f'{claim} {{{{ __worker_slot_id }}}}"')
    assert made.call.parameters["query"] == "LIMIT 50 row w7"


async def test_it_sees_what_the_step_sees() -> None:
    made = await prepared('"{{ login }} {{ ctx.floor }} {{ input.least }} {{ least }}"')
    assert made.call.parameters["query"] == "pg 6 7 7"
    assert made.call.parameters["database"] == "db_pg"


async def test_it_has_the_credentials_that_the_cursor_names() -> None:
    made = await prepared("SELECT 1")
    assert made.call.kind == "postgres"
    assert made.call.credential is not None
    assert made.call.credential.data["password"] == "pass-word-4711"


async def test_rows_are_freed_of_the_secrets_in_them() -> None:
    made = await prepared("SELECT 1")
    assert "4711" not in str(made.secrets.scrub([{"text": "a pass-word-4711 b"}]))


async def test_a_template_that_cannot_be_rendered_is_an_error() -> None:
    with pytest.raises(TemplateError):
        await prepared('"{{ 1 / 0 }}"')


async def test_a_step_without_a_cursor_claims_nothing() -> None:
    with pytest.raises(ToolFailed, match="give it a cursor"):
        await House().interpreter.claim(job("- {step: s, tool: {kind: noop}}"), POLICY, "w7")
