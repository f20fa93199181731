"""The schema for editors says the same as the checker, as far as a schema can."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from noetl.dsl.load import load
from noetl.dsl.nodes import to_plain
from noetl.dsl.schema import playbook_schema
from tests.unit.dsl.test_golden_playbooks import GOOD
from tests.unit.dsl.writing import HEAD, said, with_steps, with_tool

SCHEMA = playbook_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def data(text: str | bytes) -> Any:
    root = load(text).root
    assert root is not None
    return to_plain(root)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_reference_leads_somewhere() -> None:
    found: set[str] = set()
    waiting: list[Any] = [SCHEMA]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found |= {value["$ref"].removeprefix("#/$defs/")} if "$ref" in value else set()
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value

    assert {name.partition("/")[0] for name in found} <= set(SCHEMA["$defs"])
    assert {"step", "arc", "http_task", "action"} <= found


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_playbooks_fit_the_schema(path: Any) -> None:
    errors = [error.message for error in VALIDATOR.iter_errors(data(path.read_bytes()))]

    assert errors == []


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        HEAD + "workflow: []",
        HEAD + "workflow: [{step: start}]\nextra: 5",
        HEAD.replace("v2", "v3") + "workflow: [{step: start}]",
        with_steps("- {step: start, tols: 1}"),
        with_steps("- {step: start, tool: python}"),
        with_steps("- {step: start, next: {mode: inclusive, arcs: []}}"),
        with_steps("- {step: start, next: {arcs: [{to: end}]}}"),
        with_steps("- {step: start, loop: {in: [1], spec: {mode: paralel}}}"),
        with_steps("- {step: start, loop: {in: [1], spec: {max_in_flight: 0}}}"),
        with_steps("- {step: start, spec: {timeout: soon}}"),
        with_tool("{kind: htp}"),
        with_tool("{kind: http, method: GET}"),
        with_tool("{kind: http, url: 5}"),
        with_tool("[{name: a, kind: python}]"),
        with_tool("[{a: {kind: python}}]"),
        with_tool("{kind: noop, spec: {policy: {rules: [{else: {do: retri}}]}}}"),
    ],
)
def test_what_the_schema_refuses_the_checker_refuses_too(text: str) -> None:
    assert not VALIDATOR.is_valid(data(text))
    assert any(line.startswith("error: ") for line in said(text))
