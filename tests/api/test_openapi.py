"""The OpenAPI document names every route, and everything that it refers to is in it."""

import json
import re
from typing import Any

from jsonschema import Draft202012Validator
from starlette.routing import Route as StarletteRoute

from noetl.api.app import ROUTES
from noetl.api.openapi import document
from tests.api.running import Api

DOCUMENT = document(ROUTES, "1.2.3")


def operations() -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_is_in_the_document() -> None:
    described = {(method.upper(), path) for path, method, _ in operations()}
    assert described == {(route.method, route.public_path) for route in ROUTES}


def test_every_reference_leads_somewhere() -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DOCUMENT)))
    assert names <= DOCUMENT["components"]["schemas"].keys()


def test_every_schema_is_one() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_operations_have_names_of_their_own_and_their_parameters() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    for path, _, operation in operations():
        declared = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert declared == re.findall(r"\{(\w+)\}", path)
        assert operation["summary"]
        assert "default" in operation["responses"]


async def test_the_server_gives_the_document_and_its_answers_follow_it(api: Api) -> None:
    served = await api.get("/openapi.json")
    assert served["paths"] == json.loads(json.dumps(DOCUMENT["paths"]))
    assert served["openapi"].startswith("3.1")

    execution = await api.start()
    shown = await api.ended(execution)
    schema = {
        "$ref": "#/components/schemas/ExecutionDetail",
        "components": served["components"],
    }
    Draft202012Validator(schema).validate(shown)


def test_routes_match_as_they_are_written() -> None:
    paths = [StarletteRoute(route.path, lambda _: None).path for route in ROUTES]
    assert len(paths) == len(ROUTES)
