"""Credentials and the keychain: used by tools, looked up when needed, never recorded."""

from typing import Any

import msgspec
import pytest

from noetl.domain.credential import OpenCredential
from noetl.domain.events.values import Failure
from noetl.kernel.errors import CredentialUnreadable, StoreUnavailable
from noetl.kernel.scope import Scope
from noetl.ports.tool import ToolCall
from noetl.templates.recorded import value_of
from tests.unit.pipeline.rows import FunctionTool, House, fails, in_turn, job

WORD = "hunter2-hunter2"


class TestAuth:
    async def test_a_credential_is_opened_by_name(self) -> None:
        tool = FunctionTool(lambda _: 1)
        house = House(postgres=tool)
        await house.keep("pg_local", {"host": "db", "password": WORD}, "postgres")

        await house.run(
            job(
                "- step: s\n  tool: {kind: postgres, auth: '{{ pg_auth }}', query: q}",
                workload={"pg_auth": "pg_local"},
            )
        )

        (call,) = tool.calls
        opened = OpenCredential(
            name="pg_local", type="postgres", data={"host": "db", "password": WORD}
        )
        assert call.credentials == {"": opened}
        assert call.credential == opened

    async def test_a_missing_one_says_how_to_add_it(self) -> None:
        ended = await House(postgres=FunctionTool(lambda _: 1)).run(
            job("- step: s\n  tool: {kind: postgres, auth: pg_local, query: q}")
        )

        assert ended.error is not None
        assert (ended.error.kind, ended.error.code) == ("auth", "credential_missing")
        assert "noetl credentials add pg_local" in ended.error.message

    async def test_several_go_by_their_aliases_and_options_add_to_them(self) -> None:
        tool = FunctionTool(lambda _: 1)
        house = House(duckdb=tool)
        await house.keep("stored", {"host": "db", "service": "own"}, "postgres")

        await house.run(
            job(
                """
                - step: s
                  tool:
                    kind: duckdb
                    query: q
                    auth:
                      pg: {type: postgres, credential: stored, db_name: "{{ name }}", service: x}
                      gcs: {type: hmac, key_id: k, secret: "{{ name }}-secret"}
                """,
                workload={"name": "sales"},
            )
        )

        (call,) = tool.calls
        assert call.credentials["pg"].data == {"host": "db", "service": "own", "db_name": "sales"}
        assert call.credentials["gcs"] == OpenCredential(
            name="gcs", type="hmac", data={"key_id": "k", "secret": "sales-secret"}
        )

    async def test_a_transfer_names_them_at_its_ends(self) -> None:
        tool = FunctionTool(lambda _: 1)
        house = House(transfer=tool)
        await house.keep("one", {"token": WORD})

        await house.run(
            job(
                """
                - step: s
                  tool:
                    kind: transfer
                    source: {type: http, url: u, auth: one}
                    target: {type: postgres, table: t, auth: {type: postgres, password: pw-12345}}
                """
            )
        )

        (call,) = tool.calls
        assert call.credentials["source"].data == {"token": WORD}
        assert call.credentials["target"].data == {"password": "pw-12345"}

    async def test_rows_share_a_lookup_until_it_is_old_or_refused(self) -> None:
        house = House(http=FunctionTool(in_turn(1, 1, 1, fails("auth"), 1)))
        asked: list[str] = []
        lookup = house.credentials.get

        async def counted(scope: Scope, name_or_id: str) -> OpenCredential | None:
            asked.append(name_or_id)
            return await lookup(scope, name_or_id)

        house.credentials.get = counted  # type: ignore[method-assign]
        await house.keep("api", {"token": WORD})
        work = job("- step: s\n  tool: {kind: http, auth: api, url: u}")

        counts = []
        for pause in (0.0, 0.0, 40.0, 0.0, 0.0):
            house.clock.seconds += pause
            await house.run(work)
            counts.append(len(asked))

        assert counts == [1, 1, 2, 2, 3]

    @pytest.mark.parametrize(
        ("error", "kind", "retryable"),
        [
            (CredentialUnreadable("api"), "auth", False),
            (StoreUnavailable("try again"), "storage_access", True),
        ],
    )
    async def test_a_store_that_cannot_answer_fails_the_task(
        self, error: Exception, kind: str, retryable: bool
    ) -> None:
        async def broken(scope: Scope, name_or_id: str) -> OpenCredential | None:
            raise error

        house = House(http=FunctionTool(lambda _: 1))
        house.credentials.get = broken  # type: ignore[method-assign]

        ended = await house.run(job("- step: s\n  tool: {kind: http, auth: api, url: u}"))

        assert ended.error is not None
        assert (ended.error.kind, ended.error.retryable) == (kind, retryable)


class TestScrubbing:
    async def test_nothing_that_leaves_a_row_shows_what_it_has_used(self) -> None:
        def leaky(call: ToolCall) -> Any:
            assert call.credential is not None
            return {"said": f"password={call.credential.data['password']}!", "host": "db.acme"}

        house = House(http=FunctionTool(leaky, effect=True))
        await house.keep("api", {"password": WORD, "host": "db.acme", "user": "bo"})

        ended = await house.run(
            job(
                """
                - step: s
                  tool:
                    - name: a
                      kind: http
                      auth: api
                      url: u
                      set: {ctx.said: "{{ output.said }}", bare: "{{ output.said }}"}
                      emit: {object: order, id: "{{ output.said }}",
                             attributes: {x: "{{ output.said }}"}}
                    - {name: b, kind: http, auth: api, url: u}
                """
            )
        )

        (call,) = ended.calls
        recorded = [*house.journal.calls, call, ended.writes, *ended.emitted]
        assert all(WORD not in str(msgspec.to_builtins(each)) for each in recorded)
        assert ended.value.tasks["a"] == {"said": "password=***!", "host": "db.acme"}
        assert ended.writes == {"said": "password=***!"}

    async def test_failures_are_scrubbed_too(self) -> None:
        def leaky(_call: ToolCall) -> Any:
            raise RuntimeError(f"cannot log in with {WORD}")

        house = House(http=FunctionTool(leaky, effect=True))
        await house.keep("api", {"headers": {"Authorization": f"Bearer {WORD}"}})

        ended = await house.run(job("- step: s\n  tool: {kind: http, auth: api, url: u}"))

        assert ended.error == Failure(
            kind="unknown",
            message="RuntimeError: cannot log in with ***",
            detail={"py": {"exception": "RuntimeError"}},
        )
        assert ended.calls[0].error == ended.error

    @pytest.mark.parametrize(
        "shown",
        [
            "amqp://bo:pass%2Fword-1@mq/",
            "pass/word-1",
            "pass%2Fword-1",
            "Ym86cGFzcy93b3JkLTE=",
        ],
    )
    async def test_a_secret_is_known_in_all_its_forms(self, shown: str) -> None:
        house = House(http=FunctionTool(lambda _: f"<{shown}>"))
        data = {"user": "bo", "password": "pass/word-1", "url": "amqp://bo:pass%2Fword-1@mq/"}
        await house.keep("api", data)

        ended = await house.run(job("- step: s\n  tool: {kind: http, auth: api, url: u}"))

        assert ended.value == "<***>"

    async def test_what_the_secrets_tool_gives_can_be_used_but_does_not_leave(self) -> None:
        used = FunctionTool(lambda call: call.parameters["url"])

        ended = await House(http=used, secrets=FunctionTool(lambda _: WORD)).run(
            job(
                """
                - step: s
                  tool:
                    - {kind: secrets, path: p, set: {kept: "{{ output }}"}}
                    - {name: b, kind: http, url: "{{ kept }}"}
                """
            )
        )

        assert used.calls[0].parameters["url"] == WORD
        assert list(ended.value.tasks.values()) == ["***", "***"]


async def test_a_recorded_effect_holds_no_secret() -> None:
    house = House(http=FunctionTool(lambda _: {"echo": WORD}, effect=True))
    await house.keep("api", {"token": WORD})

    ended = await house.run(job("- step: s\n  tool: {kind: http, auth: api, url: u}"))

    (call,) = ended.calls
    assert call.result is not None
    assert value_of(call.result) == {"echo": "***"}
