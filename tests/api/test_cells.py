"""Workers learn where objects are, and are refused when they would put them elsewhere."""

from pathlib import Path

import msgspec
import pytest

from noetl.bootstrap.cells import own_store
from noetl.bootstrap.engine import LOCAL_WORKER
from noetl.bootstrap.remote_worker import run_worker
from noetl.bootstrap.settings import Settings
from noetl.client.connection import Connection
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.naming.cells import registry_from_json
from noetl.domain.naming.placement import CellPlacement
from noetl.domain.work import WorkerIdentity
from noetl.kernel.errors import PlacementMismatch
from noetl.kernel.ids import WorkerId
from tests.api.running import Api, running_api

CELLS = (
    '{"cells": [{"name": "blue", "provider": "s3", "url": "s3://results", "region": "eu-1",'
    ' "endpoint": "http://127.0.0.1:9000"},'
    ' {"name": "green", "provider": "file", "url": "file:///shared", "region": "us-1"}]}'
)


async def test_one_cell_is_where_the_payloads_are(api: Api) -> None:
    answer = await api.call("GET", "/api/internal/cells", headers=api.as_worker)
    assert answer.status == 200
    url = api.engine.settings.payload_path.as_uri()
    assert answer.body == {
        "placement": {"env": "dev", "region": "local", "cell": "local", "shard_count": 256},
        "cells": [{"name": "local", "provider": "file", "url": url, "region": "local"}],
    }
    assert answer.headers["Cache-Control"] == "private, max-age=300"


async def test_cells_are_for_workers_only(api: Api) -> None:
    answer = await api.call("GET", "/api/internal/cells")
    assert (answer.status, answer.body["code"]) == (401, "key_missing")


async def test_all_cells_of_the_registry_are_told(settings: Settings, tmp_path: Path) -> None:
    url = (tmp_path / "shared").as_uri()
    cells = CELLS.replace("file:///shared", url)
    own = msgspec.structs.replace(settings, payload_url=url)
    several = msgspec.structs.replace(own, result_cell="green", result_cells=cells)
    async with running_api(several, has_worker=False) as api:
        answer = await api.call("GET", "/api/internal/cells", headers=api.as_worker)
    assert answer.body["placement"]["cell"] == "green"
    assert registry_from_json(msgspec.json.encode(answer.body)) == registry_from_json(cells)


@pytest.mark.parametrize(
    "other",
    [
        CellPlacement("prod", "local", "local"),
        CellPlacement("dev", "eu-1", "local"),
        CellPlacement("dev", "local", "blue"),
        CellPlacement("dev", "local", "local", 128),
    ],
    ids=str,
)
async def test_a_worker_with_another_placement_is_refused_and_told_both(
    api: Api, other: CellPlacement
) -> None:
    worker = WorkerIdentity(worker_id=WorkerId("w"), boot_id="1", slots=1, placement=other)
    connection = Connection(api.address, api.internal_key)
    desk = HttpWorkDesk(connection)
    try:
        with pytest.raises(PlacementMismatch, match=f"worker under {other};"):
            await desk.register(worker)
        with pytest.raises(PlacementMismatch, match="keeps results under env=dev region=local"):
            await desk.claim(worker, 1, 0.0)
        same = msgspec.structs.replace(worker, placement=api.engine.settings.placement)
        await desk.register(same)
        assert await desk.claim(same, 1, 0.0) == []
        await desk.register(msgspec.structs.replace(worker, placement=None))
    finally:
        await connection.close()


@pytest.mark.parametrize("payload_url", ["s3://results", "file:///somewhere/else", "file:"])
async def test_a_worker_that_writes_to_another_store_is_refused(
    api: Api, tmp_path: Path, payload_url: str
) -> None:
    own = Settings(home=str(tmp_path / "another home"), payload_url=payload_url)
    other = WorkerIdentity(worker_id=WorkerId("w"), boot_id="1", slots=1, store=own_store(own))
    connection = Connection(api.address, api.internal_key)
    desk = HttpWorkDesk(connection)
    try:
        with pytest.raises(PlacementMismatch, match="the same NOETL_PAYLOAD_URL"):
            await desk.register(other)
        with pytest.raises(PlacementMismatch, match=f"worker under {own_store(own)};"):
            await desk.claim(other, 1, 0.0)
        same = own_store(api.engine.settings)
        assert same is not None
        await desk.register(msgspec.structs.replace(other, store=same))
        through_us = own_store(msgspec.structs.replace(own, payload_url="server:"))
        await desk.register(msgspec.structs.replace(other, store=through_us))
    finally:
        await connection.close()


async def test_a_worker_process_with_other_settings_does_not_start(
    api: Api, settings: Settings
) -> None:
    other = msgspec.structs.replace(settings, result_cell="blue")
    with pytest.raises(PlacementMismatch, match="give both the same NOETL_RESULT_… settings"):
        await run_worker(other, api.address, 1)
    assert [each["worker_id"] for each in (await api.get("/api/workers"))["workers"]] == [
        LOCAL_WORKER
    ]
