"""The client of the command line against a real server."""

import pytest

from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.settings import Settings
from noetl.client import http_client
from noetl.client.connection import Connection
from noetl.client.credentials import HttpCredentialStore
from noetl.client.http_client import NoetlClient
from noetl.client.playbooks import HttpPlaybooks
from noetl.domain.credential import NewCredential
from noetl.kernel.errors import (
    EntryNotFound,
    ExecutionNotFound,
    LogUnavailable,
    PlaybookInvalid,
    RequestInvalid,
    SettingInvalid,
    StateRefuses,
)
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from tests.api.running import FAILING, HELLO, WAITING, Api, running_api

UNKNOWN = ExecutionId("1")


@pytest.fixture
def client(connection: Connection) -> NoetlClient:
    return NoetlClient(connection, SystemClock())


async def test_a_playbook_is_registered_run_and_told(client: NoetlClient) -> None:
    registered = await client.register(HELLO.encode())
    execution = await client.execute(registered.path, payload={"who": "Anna"})
    outcome = await client.until_over(execution)
    shown = await client.show(execution)

    assert (registered.path, registered.version, registered.is_new) == ("tests/hello", 1, True)
    assert (outcome.status, outcome.step) == ("COMPLETED", "second")
    assert (shown.status, shown.event_count) == ("COMPLETED", outcome.events)
    assert await client.explain(execution) == [
        f"It completed in step second after {shown.duration_seconds:.1f} s."
    ]


async def test_following_tells_every_event_of_the_log_once(client: NoetlClient) -> None:
    await client.register(HELLO)
    execution = await client.execute("tests/hello")

    followed = [event async for event in client.follow(execution)]

    assert followed == await client.events(execution)
    assert followed[-1].envelope.event_type == "playbook.completed"
    assert (await client.events(execution, after_version=3, limit=2)) == followed[3:5]


async def test_a_follower_finds_a_server_that_went_away(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "PAUSE_SECONDS", 0.01)
    async with running_api(settings) as api:
        connection = Connection(api.address, api.internal_key)
        execution = ExecutionId(await api.start(WAITING))
        events = NoetlClient(connection, SystemClock()).follow(execution)
        first = await anext(events)
    assert first.envelope.stream_version == 1

    with pytest.raises(LogUnavailable, match="is the server running"):
        _ = [event async for event in events]
    await connection.close()


async def test_a_failed_execution_is_told_with_its_error(client: NoetlClient) -> None:
    await client.register(FAILING)
    execution = await client.execute("tests/failing")

    outcome = await client.until_over(execution)
    assert outcome.status == "FAILED"
    assert outcome.error is not None

    await client.retry(execution, reason="again")
    again = await client.until_over(execution)
    assert again.events > outcome.events


async def test_an_execution_is_steered(client: NoetlClient) -> None:
    await client.register(WAITING)
    execution = await client.execute("tests/waiting")

    await client.pause(execution, "lunch")
    assert (await client.show(execution)).status == "PAUSED"
    await client.resume(execution)
    assert await client.cancel(execution, "enough") == [execution]
    assert await client.cancel(execution) == []
    assert (await client.until_over(execution)).status == "CANCELLED"


async def test_errors_of_the_server_are_raised_as_they_were(client: NoetlClient) -> None:
    with pytest.raises(EntryNotFound, match="tests/none"):
        await client.execute("tests/none")
    with pytest.raises(ExecutionNotFound, match="no execution 1"):
        await client.show(UNKNOWN)
    with pytest.raises(ExecutionNotFound):
        _ = [event async for event in client.follow(UNKNOWN)]
    with pytest.raises(RequestInvalid, match="payload"):
        await client.execute("x", payload=[1])  # type: ignore[arg-type]
    with pytest.raises(PlaybookInvalid) as caught:
        await client.register("workflow: []")
    assert len(caught.value.problems) > 1
    await client.register(HELLO)
    ended = (await client.until_over(await client.execute("tests/hello"))).execution_id
    with pytest.raises(StateRefuses):
        await client.pause(ended)


async def test_executions_are_listed(client: NoetlClient) -> None:
    await client.register(HELLO)
    execution = await client.execute("tests/hello")
    await client.until_over(execution)
    for _ in range(1_000):  # read models follow the log
        listed = await client.executions(path="tests/hello", status="COMPLETED")
        if listed:
            break
    assert [each.execution_id for each in listed] == [execution]
    assert await client.executions(status="FAILED") == []


async def test_a_server_that_is_not_there_may_come_back() -> None:
    connection = Connection("http://127.0.0.1:1")
    with pytest.raises(LogUnavailable) as caught:
        await NoetlClient(connection, SystemClock()).show(UNKNOWN)
    assert caught.value.retryable
    await connection.close()


async def test_an_address_that_is_none_is_told() -> None:
    connection = Connection("nowhere at all")
    with pytest.raises(RequestInvalid, match="no address"):
        await NoetlClient(connection, SystemClock()).show(UNKNOWN)
    await connection.close()


async def test_a_key_opens_the_server(settings: Settings) -> None:
    guarded = Settings(home=settings.home, api_key="a-long-secret-key")
    async with running_api(guarded) as api:
        without, having = Connection(api.address), Connection(api.address, guarded.api_key)
        with pytest.raises(SettingInvalid, match="NOETL_API_KEY"):
            await NoetlClient(without, SystemClock()).executions()
        assert await NoetlClient(having, SystemClock()).executions() == []
        await without.close()
        await having.close()


async def test_credentials_of_a_server_are_kept_opened_and_removed(connection: Connection) -> None:
    store = HttpCredentialStore(connection, DEFAULT_SCOPE)
    new = NewCredential(name="the bank/eu", type="bearer", data={"token": "t"}, tags=("a",))

    entry = await store.put(DEFAULT_SCOPE, new)
    opened = await store.get(DEFAULT_SCOPE, "the bank/eu")

    assert entry.name == new.name
    assert opened is not None
    assert opened.data == {"token": "t"}
    assert await store.list(DEFAULT_SCOPE, type="bearer") == [entry]
    assert await store.list(DEFAULT_SCOPE, type="http") == []
    assert await store.get(Scope("acme", "default"), "the bank/eu") is None
    assert await store.remove(DEFAULT_SCOPE, entry.id)
    assert not await store.remove(DEFAULT_SCOPE, entry.id)
    assert await store.get(DEFAULT_SCOPE, entry.id) is None


async def test_a_playbook_is_fetched_once_and_proved(api: Api, connection: Connection) -> None:
    registered = await api.engine.playbooks.register(DEFAULT_SCOPE, HELLO)
    playbooks = HttpPlaybooks(connection)

    playbook = await playbooks.load(DEFAULT_SCOPE, registered.entry.digest)

    assert playbook == await api.engine.playbooks.load(DEFAULT_SCOPE, registered.entry.digest)
    assert await playbooks.load(DEFAULT_SCOPE, registered.entry.digest) is playbook
    with pytest.raises(EntryNotFound):
        await playbooks.load(DEFAULT_SCOPE, "0" * 64)
