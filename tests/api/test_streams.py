"""Server-sent events: all that happened, then what happens, from where the reader left off."""

import asyncio

import aiohttp
import pytest

from noetl.api import following
from tests.api.running import WAITING, Api


def parsed(text: str) -> list[tuple[int, str]]:
    """The id and the type of each event."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "id" in fields:
            found.append((int(fields["id"]), fields["event"]))
    return found


async def read_some(response: aiohttp.ClientResponse, count: int) -> list[tuple[int, str]]:
    text = ""
    while len(parsed(text)) < count:
        text += (await response.content.readany()).decode()
    return parsed(text)


async def test_a_stream_tells_everything_and_ends_with_the_execution(api: Api) -> None:
    execution = await api.start()
    async with api.session.get(f"/api/executions/{execution}/stream") as response:
        assert response.content_type == "text/event-stream"
        events = parsed(await response.text())

    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "playbook.completed"


async def test_a_reader_goes_on_where_it_left_off(api: Api) -> None:
    execution = await api.start()
    await api.ended(execution)
    path = f"/api/executions/{execution}/stream"

    answer = await api.call("GET", path, headers={"Last-Event-ID": "7"})
    by_query = await api.call("GET", path, params={"after_version": "7"})

    assert parsed(answer.body)[0][0] == 8
    assert by_query.body == answer.body


async def test_a_reader_who_has_seen_the_end_is_told_not_to_come_back(api: Api) -> None:
    execution = await api.start()
    seen = (await api.ended(execution))["event_count"]
    path = f"/api/executions/{execution}/stream"

    answer = await api.call("GET", path, headers={"Last-Event-ID": str(seen)})

    assert (answer.status, answer.body) == (204, "")


async def test_what_happens_while_somebody_reads_is_told_at_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 3_600.0)  # nobody looks: they are told
    execution = await api.start(WAITING)
    async with api.session.get(f"/api/executions/{execution}/stream") as response:
        before = await read_some(response, 3)
        await api.post(f"/api/executions/{execution}/cancel")
        async with asyncio.timeout(60):
            rest = parsed(await response.text())

    assert before[0] == (1, "playbook.initialized")
    assert "execution.cancelled" in [name for _, name in rest]


async def test_a_wrong_last_event_id_is_a_problem(api: Api) -> None:
    execution = await api.start()
    path = f"/api/executions/{execution}/stream"
    for wrong in ("x", "-1", "9" * 30, "²"):
        answer = await api.call("GET", path, headers={"Last-Event-ID": wrong})
        assert (answer.status, answer.body["code"]) == (422, "request_invalid")
