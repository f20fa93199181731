"""The OpenAPI document, made from the table of routes and the types that they name."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.api.problems import MEDIA_TYPE, Problem
from noetl.api.route import AnyRoute, Nothing

_PARAMETER = re.compile(r"\{(\w+)\}")
_TEMPLATE = "#/components/schemas/{name}"


def document(routes: Sequence[AnyRoute], version: str) -> dict[str, Any]:
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    by_type = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = _operation(route, by_type, components)
        paths.setdefault(route.public_path, {})[route.method.lower()] = operation
    queries = {_name(by_type[id(route.query)]) for route in routes}
    return {
        "openapi": "3.1.0",
        "info": {"title": "NoETL", "version": version},
        "paths": paths,
        "components": {
            "schemas": {name: each for name, each in components.items() if name not in queries},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
        "security": [{}, {"key": []}, {"header": []}],
    }


def _types(routes: Sequence[AnyRoute]) -> list[Any]:
    found: list[Any] = [Problem]
    for route in routes:
        found += [route.body, route.query]
        if route.gives is not None:
            found.append(route.gives)
    return found


def _operation(
    route: AnyRoute, by_type: dict[int, Any], components: dict[str, Any]
) -> dict[str, Any]:
    query = _name(by_type[id(route.query)])
    content = {} if route.gives is None else {"schema": by_type[id(route.gives)]}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "tags": [_noun(route)],
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(components[query]),
            *_header_parameters(route),
        ],
        "responses": {
            "200": {"description": "Done.", "content": {route.media_type: content}},
            "default": {
                "description": "A problem.",
                "content": {MEDIA_TYPE: {"schema": by_type[id(Problem)]}},
            },
        },
    }
    if route.body is not Nothing:
        body = {"application/json": {"schema": by_type[id(route.body)]}}
        operation["requestBody"] = {"content": body}
    return operation


def _operation_id(route: AnyRoute) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", route.public_path.lower()).strip("_")
    return f"{route.method.lower()}_{words}"


def _noun(route: AnyRoute) -> str:
    parts = route.public_path.strip("/").split("/")
    return parts[1] if parts[0] == "api" and len(parts) > 1 else parts[0]


def _path_parameters(route: AnyRoute) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.public_path)
    ]


def _header_parameters(route: AnyRoute) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in route.headers
    ]


def _name(reference: dict[str, Any]) -> str:
    """Of the component that a type's schema refers to."""
    return str(reference["$ref"]).rpartition("/")[2]


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": each}
        for name, each in schema["properties"].items()
    ]
