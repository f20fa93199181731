"""Credentials over HTTP: their data is given to nobody who lists them."""

from noetl.bootstrap.settings import Settings
from tests.api.running import Api, running_api

SECRET = "not-for-everybody"
INTERNAL = {"Authorization": "Bearer for-workers"}


async def test_credentials_are_kept_found_and_removed(api: Api) -> None:
    data = {"token": SECRET}
    kept = await api.post("/api/credentials", name="bank", type="bearer", data=data, tags=["x"])
    await api.post("/api/credentials", name="shop", type="http", data=data, meta=None)

    listed = await api.get("/api/credentials")
    found = await api.get("/api/credentials", q="BAN")
    by_type = await api.get("/api/credentials", type="http")
    shown = await api.get(f"/api/credentials/{kept['id']}")
    removed = await api.call("DELETE", "/api/credentials/bank")

    assert [each["name"] for each in listed["items"]] == ["bank", "shop"]
    assert [each["name"] for each in found["items"]] == ["bank"]
    assert [each["name"] for each in by_type["items"]] == ["shop"]
    assert (shown["name"], shown["data"]) == ("bank", None)
    assert SECRET not in str((kept, listed, found, shown))
    assert removed.status == 200
    assert (await api.call("GET", "/api/credentials/bank")).status == 404


async def test_data_is_given_to_holders_of_the_internal_key_alone(settings: Settings) -> None:
    guarded = Settings(home=settings.home, internal_key="for-workers")
    async with running_api(guarded) as api:
        data = {"token": SECRET}
        await api.post("/api/credentials", name="bank", type="bearer", data=data)
        path = "/api/credentials/bank"

        refused = await api.call("GET", path, params={"include_data": "true"})
        given = await api.call("GET", path, params={"include_data": "true"}, headers=INTERNAL)
        closed = await api.call("GET", "/api/internal/credentials/bank")
        opened = await api.call("GET", "/api/internal/credentials/bank", headers=INTERNAL)

    assert (refused.status, closed.status) == (403, 401)
    assert SECRET not in str((refused, closed))
    assert given.body["data"] == opened.body["data"] == data


async def test_without_a_key_nobody_reads_a_credential(api: Api) -> None:
    await api.post("/api/credentials", name="bank", type="bearer", data={"token": "hush"})
    closed = await api.call("GET", "/api/internal/credentials/bank")
    opened = await api.call("GET", "/api/internal/credentials/bank", headers=api.as_worker)
    masked = await api.call("GET", "/api/credentials/bank?include_data=true")
    assert (closed.status, opened.status) == (401, 200)
    assert "hush" not in str(masked.body)
