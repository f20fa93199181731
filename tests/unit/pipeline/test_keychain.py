"""Entries of the keychain are looked up when a template first asks, and stay hidden."""

from typing import Any

import pytest

from noetl.domain.events.values import Failure
from tests.unit.pipeline.rows import FunctionTool, House, fails, in_turn, job

WORD = "hunter2-hunter2"


class TestKeychain:
    async def field(self, entries: str, template: str, house: House | None = None) -> Any:
        """What a tool gets for a template over the keychain, or how that failed."""
        tool = FunctionTool(lambda call: f"seen {call.parameters['result']}")
        house = house or House()
        house.tools.by_kind["noop"] = tool
        ended = await house.run(
            job(
                f"- step: s\n  tool: {{kind: noop, result: '{template}'}}", f"keychain: {entries}\n"
            )
        )
        if ended.error is not None:
            return ended.error
        assert ended.value == "seen ***"
        return tool.calls[-1].parameters["result"]

    async def test_literal_ones(self) -> None:
        bearer = "[{name: k, kind: bearer, token: hunter2-hunter2}]"
        static = "[{name: k, kind: static, map: {a: hunter2-hunter2}}]"

        assert await self.field(bearer, "{{ keychain.k.token }}") == WORD
        assert await self.field(static, "{{ keychain.k.a }}") == WORD

    @pytest.mark.parametrize(
        ("entry", "template"),
        [
            ("{kind: credential, credential: api}", "{{ keychain.k.token }}"),
            ("{kind: credential_ref, credential: api}", "{{ keychain.k.token }}"),
            ("{type: bearer, ref: api}", "{{ keychain.k.token }}"),
            ("{kind: secrets, map: {a: api/token}}", "{{ keychain.k.a }}"),
            ("{kind: secret_manager, map: {token: api}}", "{{ keychain.k.token }}"),
            ("{kind: secrets, provider: credential, map: {a: lone}}", "{{ keychain.k.a }}"),
        ],
    )
    async def test_stored_ones(self, entry: str, template: str) -> None:
        house = House()
        await house.keep("api", {"token": WORD, "host": "acme"})
        await house.keep("lone", {"anything": WORD})

        assert await self.field(f"[{{name: k, {entry[1:]}]", template, house) == WORD

    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            ("{kind: credential, credential: nowhere}", "there is no credential 'nowhere'"),
            ("{kind: secrets, provider: gcp, map: {a: b}}", "has the provider 'gcp'"),
            ("{kind: secrets, map: {a: api/none}}", "has no field 'none'"),
            ("{kind: secrets, map: {a: api}}", "name one: api/…"),
            (
                "{kind: google_id_token, service_account_secret: x, target_audience: y}",
                "use credential, bearer, static, oauth2",
            ),
            ("{kind: bearer, token: '{{ keychain.k.token }}'}", "need each other: k -> k"),
        ],
    )
    async def test_one_that_cannot_be_looked_up_says_why(self, entry: str, said: str) -> None:
        house = House()
        await house.keep("api", {"one": WORD, "two": WORD})

        error = await self.field(f"[{{name: k, {entry[1:]}]", "{{ keychain.k.token }}", house)

        assert isinstance(error, Failure)
        assert error.kind == "auth"
        assert said in error.message

    async def test_only_the_tasks_that_use_it_fail_with_it(self) -> None:
        ended = await House().run(
            job(
                "- step: s\n  tool: {kind: noop, result: 1}",
                "keychain: [{name: k, kind: credential, credential: nowhere}]\n",
            )
        )

        assert ended.status == "ok"

    async def test_a_secret_that_is_set_shows_as_a_mask(self) -> None:
        ended = await House().run(
            job(
                "- step: s\n  tool: {kind: noop, input: {t: '{{ keychain.k.token }}'},"
                " set: {ctx.t: '{{ input.t }}'}}",
                "keychain: [{name: k, kind: bearer, token: hunter2-hunter2}]\n",
            )
        )

        assert ended.writes == {"t": "***"}


class TestTokens:
    TEXT = "- step: s\n  tool: {kind: noop, result: '{{ keychain.api.access_token }}'}"
    MORE = """
        keychain:
          - {name: app, kind: credential, credential: stored}
          - name: api
            kind: oauth2
            auto_renew: true
            endpoint: "{{ base }}/token"
            headers: {Content-Type: application/x-www-form-urlencoded}
            data: {grant_type: client_credentials, secret: "{{ keychain.app.secret }}"}
        """

    async def house(self, answer: Any) -> tuple[House, FunctionTool]:
        endpoint = FunctionTool(in_turn(answer))
        house = House(http=endpoint)
        await house.keep("stored", {"secret": WORD})
        return house, endpoint

    async def test_a_token_is_asked_for_once_until_it_is_about_to_expire(self) -> None:
        body = {"access_token": "token-12345", "expires_in": 300, "token_type": "Bearer"}
        house, endpoint = await self.house({"status_code": 200, "data": body})
        work = job(self.TEXT, self.MORE, workload={"base": "https://id"})

        counts = []
        for pause in (0.0, 200.0, 60.0):
            house.clock.seconds += pause
            ended = await house.run(work)
            counts.append(len(endpoint.calls))
            assert (ended.status, ended.value) == ("ok", "***")

        assert counts == [1, 1, 2]
        request = endpoint.calls[0].parameters
        assert (request["url"], request["method"]) == ("https://id/token", "POST")
        assert request["form"] == {"grant_type": "client_credentials", "secret": WORD}

    async def test_a_token_that_expires_while_the_row_runs_is_asked_for_again(self) -> None:
        endpoint = FunctionTool(
            in_turn(
                {"data": {"access_token": "token-1", "expires_in": 100}},
                {"data": {"access_token": "token-2", "expires_in": 100}},
            )
        )
        house = House(http=endpoint)
        house.tools.by_kind["noop"] = used = FunctionTool(lambda _: house.clock.sleep(90))
        await house.keep("stored", {"secret": WORD})
        use = "kind: noop, result: '{{ keychain.api.access_token }}'"
        text = f"- step: s\n  tool: [{{name: a, {use}}}, {{name: b, {use}}}]"

        await house.run(job(text, self.MORE, workload={"base": "https://id"}))

        assert [call.parameters["result"] for call in used.calls] == ["token-1", "token-2"]

    async def test_an_endpoint_that_refuses_is_a_failure_of_the_task(self) -> None:
        house, _ = await self.house(fails("server_error", f"refused {WORD}", retryable=True))

        ended = await house.run(job(self.TEXT, self.MORE, workload={"base": "https://id"}))

        assert ended.error is not None
        assert (ended.error.kind, ended.error.retryable) == ("auth", True)
        assert ended.error.message == "the keychain entry 'api' got no token: refused ***"
