"""Who is served: holders of the key, or callers on this machine."""

import pytest

from noetl.api.guard import is_loopback
from noetl.bootstrap.engine import open_engine
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import SettingInvalid
from tests.api.running import Api, running_api

KEY = "a-long-secret-key"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.7:8082", "localhost.evil.example"]
)
async def test_without_a_key_a_foreign_host_name_is_refused(api: Api, host: str) -> None:
    answer = await api.call("GET", "/api/executions", headers={"Host": host})
    assert (answer.status, answer.body["code"]) == (403, "host_refused")


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:80", "x.localhost"])
async def test_without_a_key_this_machine_is_served(api: Api, host: str) -> None:
    assert (await api.call("GET", "/api/executions", headers={"Host": host})).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example", "null", "", "http://", "http://[", "http://localhost:x"),
        *("http://localhost", "http://localhost:1", "http://127.0.0.1:8082", "localhost:8082"),
    ],
)
async def test_a_page_of_another_site_cannot_start_anything(api: Api, origin: str) -> None:
    """Nor one that another program of this machine shows: it has another port."""
    headers = {"Origin": origin, "Host": "localhost:8082", "Content-Type": "text/plain"}
    answer = await api.call("POST", "/api/execute", data=b'{"path":"x"}', headers=headers)
    assert (answer.status, answer.body["code"]) == (403, "host_refused")


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8082", "localhost:8082"),
        ("http://LOCALHOST:8082", "localhost:8082"),
        ("http://[::1]:8082", "[::1]:8082"),
        ("http://localhost", "localhost:80"),
        ("https://localhost", "localhost"),
    ],
)
async def test_a_page_of_this_server_is_served(api: Api, origin: str, host: str) -> None:
    headers = {"Origin": origin, "Host": host}
    assert (await api.call("GET", "/api/executions", headers=headers)).status == 200


async def test_with_a_key_everybody_gives_it(settings: Settings) -> None:
    async with running_api(Settings(home=settings.home, api_key=KEY)) as api:
        for wrong in ({}, {"X-API-Key": "x"}, {"Authorization": f"Basic {KEY}"}):
            answer = await api.call("GET", "/api/executions", headers=wrong)
            assert (answer.status, answer.body["code"]) == (401, "key_missing")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        for right in ({"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}):
            answer = await api.call("GET", "/api/executions", headers=right | {"Host": "far.away"})
            assert answer.status == 200
        assert (await api.call("GET", "/nope")).status == 401
        assert (await api.call("GET", "/health")).status == 200


async def test_where_others_can_reach_it_a_key_must_be_set(settings: Settings) -> None:
    async with open_engine(settings, has_worker=False) as engine:
        with pytest.raises(SettingInvalid, match="NOETL_API_KEY"):
            await serve(engine, "0.0.0.0", 0, print)


async def test_a_port_that_is_taken_is_told(api: Api) -> None:
    port = int(api.address.rpartition(":")[2])
    with pytest.raises(SettingInvalid, match="nothing can listen"):
        await serve(api.engine, "127.0.0.1", port, print)


async def test_the_holder_of_the_home_says_where_it_listens(api: Api) -> None:
    holder = api.engine.home.holder()
    assert holder is not None
    assert holder.address == api.address


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.8.8.8", True), ("::1", True), ("", False), ("0.0.0.0", False), ("2130706433", False)],
)
def test_loopback_is_a_matter_of_the_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
