"""The page of executions, as its script runs: what it shows, asks again and asks first."""

import asyncio
import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.api.running import HELLO, WAITING, Api

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="scripts of pages need node")


async def shown(api: Api, place: str, click: str = "") -> dict[str, Any]:
    folder = files("noetl.api").joinpath("pages")
    script = "".join(
        folder.joinpath(name).read_text("utf-8") for name in ("shared.js", "console.js")
    ).replace("EVENTS_SHOWN = 200", "EVENTS_SHOWN = 5")
    asked = {"script": script, "address": api.address, "hash": place, "click": click}
    page = await asyncio.create_subprocess_exec(
        "node",
        str(Path(__file__).with_name("page_alone.js")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await page.communicate(json.dumps(asked).encode())
    assert page.returncode == 0
    return dict(json.loads(told))


async def test_an_execution_that_is_over_is_asked_for_once(api: Api) -> None:
    ended = await api.start(HELLO)
    await api.ended(ended)
    page = await shown(api, f"#{ended}")
    assert "completed" in page["text"]
    assert page["timers"] == 0


async def test_lists_and_executions_that_run_are_asked_for_again(api: Api) -> None:
    running = await api.start(WAITING)
    for place in ("", f"#{running}"):
        assert (await shown(api, place))["timers"] == 1


async def test_the_newest_events_are_shown(api: Api) -> None:
    ended = await api.start(HELLO)
    await api.ended(ended)
    events = (await api.get(f"/api/executions/{ended}/events"))["events"]
    assert len(events) % 5, "the last page is a short one"
    page = await shown(api, f"#{ended}")
    rows = page["rows"][-5:]
    assert [int(row.split()[0]) for row in rows] == [each["stream_version"] for each in events[-5:]]
    assert f"the newest 5 of {len(events)}" in page["text"]


@pytest.mark.parametrize("place", ["#%", "#%zz", "#a?b"])
async def test_a_place_that_is_none_is_told(api: Api, place: str) -> None:
    page = await shown(api, place)
    assert "no execution" in page["trouble"]


async def test_nothing_is_cancelled_before_it_was_asked_for_twice(api: Api) -> None:
    running = await api.start(WAITING)
    page = await shown(api, f"#{running}", click="cancel")
    assert [running in question for question in page["questions"]] == [True]
    assert page["asked"] == []
