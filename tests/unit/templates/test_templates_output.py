"""`output` and step results: one object that satisfies every way playbooks read it."""

from typing import Any

import pytest

from noetl.templates.layered import (
    Layered,
    Outcome,
    PipelineResult,
    output_of_envelope,
    output_of_result,
    step_result,
)
from noetl.templates.reference import Reference
from tests.unit.templates.rendered import needed, rendered

BODY = {"data": [{"id": 1}], "meta": {"page": 2}, "status": "body's own"}
RESPONSE = {"status_code": 200, "headers": {"x": "y"}, "data": BODY, "body": BODY}
HTTP = Outcome(result=RESPONSE, http={"status": 200}, meta={"attempt": 1})
PYTHON = Outcome(result={"counter": 3, "status": "approved"}, py={})
TABLE = Outcome(result={"rows": [{"x": 1}], "row_count": 1, "status": "success"})
FAILED = Outcome(
    result={"status_code": 429, "data": "slow down"},
    status="error",
    error={"kind": "rate_limit", "retryable": True},
    http={"status": 429},
)
OWN_DATA = Outcome(result={"data": {"n": 1}, "total": 5})
LIST = Outcome(result=[1, 2])
PIPELINE = PipelineResult({"fetch": RESPONSE, "load": {"rows": [1]}, "shape": {"n": 5}})


def seen(expression: str, output: Any) -> Any:
    return rendered(f"{{{{ {expression} }}}}", {"output": output})


@pytest.mark.parametrize(
    ("outcome", "expression", "value"),
    [
        (HTTP, "output", RESPONSE),
        (HTTP, "output.data", RESPONSE),
        (HTTP, "output.data.data", BODY),
        (HTTP, "output.data.meta.page", 2),
        (HTTP, "output.status", "ok"),
        (HTTP, "output.http.status", 200),
        (HTTP, "output.meta.attempt", 1),
        (HTTP, "output.status_code", 200),
        (HTTP, "output.response", RESPONSE),
        (HTTP, "output.error.retryable", None),
        (HTTP, "output.error is defined", False),
        (PYTHON, "output.status", "ok"),
        (PYTHON, "output.data.status", "approved"),
        (PYTHON, "output.counter + output.data.counter", 6),
        (TABLE, "output.rows[0].x", 1),
        (FAILED, "output.status == 'error' and output.http.status == 429", True),
        (FAILED, "output.error.kind", "rate_limit"),
        (FAILED, "output.error.status", 429),
        (FAILED, "output.error", {"kind": "rate_limit", "retryable": True}),
        (OWN_DATA, "output.data.data.n", 1),
        (LIST, "output.data", [1, 2]),
        (LIST, "output.status", "ok"),
        (Outcome(result=PIPELINE), "output.data", {"n": 5}),
    ],
)
def test_in_a_rule_the_envelope_comes_first(outcome: Outcome, expression: str, value: Any) -> None:
    assert seen(expression, output_of_envelope(outcome)) == value


@pytest.mark.parametrize(
    ("outcome", "expression", "value"),
    [
        (HTTP, "output", RESPONSE),
        (HTTP, "output.data", BODY),
        (HTTP, "output.data.meta.page", 2),
        (HTTP, "output.data.data", [{"id": 1}]),
        (HTTP, "output.data.status_code", 200),
        (HTTP, "output.response.meta.page", 2),
        (HTTP, "output.meta", {"attempt": 1}),
        (HTTP, "output.status", "ok"),
        (HTTP, "output.http.status", 200),
        (PYTHON, "output.status", "approved"),
        (PYTHON, "output.data.counter", 3),
        (PYTHON, "output.data", {"counter": 3, "status": "approved"}),
        (TABLE, "output.data.rows[0].x", 1),
        (TABLE, "output.data.row_count | int > 0", True),
        (TABLE, "output.rows | length", 1),
        (FAILED, "output.status", "error"),
        (FAILED, "output.error.kind", "rate_limit"),
        (FAILED, "output.data", "slow down"),
        (OWN_DATA, "output.data", {"n": 1}),
        (OWN_DATA, "output.data.n + output.total", 6),
        (LIST, "output[1]", 2),
        (LIST, "output.data | length", 2),
        (LIST, "[0] + output", [0, 1, 2]),
        (Outcome(result=PIPELINE), "output.n", 5),
        (Outcome(result=PIPELINE), "output.fetch.meta.page", 2),
        (Outcome(), "output", None),
        (Outcome(), "output.data.x", None),
    ],
)
def test_elsewhere_the_result_comes_first(outcome: Outcome, expression: str, value: Any) -> None:
    assert seen(expression, output_of_result(outcome)) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("output | tojson", '{"counter":3,"status":"approved"}'),
        ("output ~ ''", '{"counter":3,"status":"approved"}'),
        ("output | length", 2),
        ("output == {'counter': 3, 'status': 'approved'}", True),
        ("output is mapping", True),
        ("output.keys()", ["counter", "status"]),
        ("output | items | first", ["counter", 3]),
        ("'counter' in output", True),
        ("[output]", [{"counter": 3, "status": "approved"}]),
        ("[output] | map(attribute='counter') | list", [3]),
        ("1 if output else 2", 1),
    ],
)
def test_as_a_value_it_is_the_result(expression: str, value: Any) -> None:
    assert seen(expression, output_of_result(PYTHON)) == value
    assert seen("output", output_of_result(PYTHON)) is PYTHON.result


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("step.n", 5),
        ("step.data.n", 5),
        ("step.shape.n", 5),
        ("step.shape.data.n", 5),
        ("step.results.shape.n", 5),
        ("step.results.fetch.data.meta.page", 2),
        ("step.fetch.meta.page", 2),
        ("step.rows", [1]),
        ("step", {"n": 5}),
        ("step.results", dict(PIPELINE.tasks)),
        ("step.other is defined", False),
    ],
)
def test_a_pipeline_gives_its_last_result_and_keeps_the_others_in_reach(
    expression: str, value: Any
) -> None:
    assert rendered(f"{{{{ {expression} }}}}", {"step": step_result(PIPELINE)}) == value


def test_a_result_without_names_is_itself() -> None:
    assert step_result([1]) == [1]
    assert step_result(None) is None
    assert not Layered([])
    assert Layered({"a": 1}) == Layered({"a": 1})
    assert repr(Layered(1)) == "Layered(1)"


def test_a_reference_is_not_opened_for_being_passed_on() -> None:
    reference = Reference("noetl://x")
    bindings = {
        "step": step_result(reference),
        "output": output_of_result(Outcome(result=reference)),
    }

    assert rendered("{{ step }}", bindings) is reference
    assert rendered("{{ output }}", bindings) is reference
    assert needed("{{ output.rows }}", bindings) == {("rows",)}
