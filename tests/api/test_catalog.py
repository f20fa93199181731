"""Playbooks over HTTP: registered, listed, read, described."""

import base64

from tests.api.running import HELLO, Api


async def test_a_playbook_is_registered_as_text_or_in_base64(api: Api) -> None:
    first = await api.post("/api/catalog/register", content=HELLO, resource_type="Playbook")
    again = await api.post(
        "/api/catalog/register", content=base64.b64encode(HELLO.encode()).decode()
    )

    assert (first["status"], first["path"], first["version"]) == ("success", "tests/hello", 1)
    assert (first["kind"], first["is_new"]) == ("Playbook", True)
    assert (again["catalog_id"], again["is_new"]) == (first["catalog_id"], False)


async def test_a_new_text_is_a_new_version(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    second = await api.post("/api/catalog/register", content=HELLO.replace("you", "all"))
    listed = await api.post("/api/catalog/list", resource_type="playbook", agent_only=False)

    assert second["version"] == 2
    assert [(each["path"], each["version"]) for each in listed["entries"]] == [
        ("tests/hello", 1),
        ("tests/hello", 2),
    ]


async def test_a_playbook_is_read_by_path_version_or_id(api: Api) -> None:
    first = await api.post("/api/catalog/register", content=HELLO)
    await api.post("/api/catalog/register", content=HELLO.replace("you", "all"))

    latest = await api.post("/api/catalog/resource", path="tests/hello", version="latest")
    old = await api.post("/api/catalog/resource", path="tests/hello", version=1)
    by_id = await api.post("/api/catalog/resource", catalog_id=first["catalog_id"])

    assert (latest["version"], latest["payload"]["workload"]["who"]) == (2, "all")
    assert old["content"] == by_id["content"] == HELLO


async def test_a_workload_has_a_form(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)

    schema = await api.get("/api/catalog/tests/hello/ui_schema")

    assert (schema["path"], schema["type"]) == ("tests/hello", "object")
    assert schema["description"] == "Says hello"
    assert {name: field["type"] for name, field in schema["properties"].items()} == {
        "who": "string",
        "times": "integer",
        "loud": "boolean",
    }


async def test_all_problems_of_a_playbook_are_told(api: Api) -> None:
    wrong = HELLO.replace("kind: noop", "kind: noob").replace("second", "third", 1)
    answer = await api.call("POST", "/api/catalog/register", json={"content": wrong})

    assert (answer.status, answer.body["code"]) == (422, "playbook_invalid")
    assert len(answer.body["problems"]) >= 2
    assert "noob" in answer.body["problems"][0]
