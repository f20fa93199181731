"""The block that stays in an event: small, and still answers what rules ask most."""

import json
from typing import Any

import pytest

from noetl.domain.events.values import ResultReference
from noetl.templates.extract import EXTRACT_BYTES_MAX, cut_as_plain, extract
from noetl.templates.layered import plain_result, step_result
from noetl.templates.recorded import referred_result, value_of
from noetl.templates.reference import Reference
from tests.unit.templates.rendered import needed, rendered

URI = "noetl://acme/p/results/1/fetch/0/0/1@1"


def table(columns: int, chars: int, rows: int = 200) -> dict[str, Any]:
    row = {f"column_{number}": "x" * chars for number in range(columns)}
    return {"status": "ok", "rows": [row] * rows, "row_count": rows}


SHAPES = {
    "narrow": table(5, 20),
    "wide": table(100, 300),
    "wider": table(500, 50),
    "two_commands": {**table(50, 30), "command_0": table(50, 30), "command_1": table(50, 30)},
    "emoji": {**table(16, 0), "rows": [{f"column_{at}": "😀" * 60 for at in range(16)}] * 200},
    "deep": {"status": "ok", "a": {"b": {"c": {"d": table(60, 60)}}}, **table(3, 3)},
}


def size(plain: Any) -> int:
    return len(json.dumps(plain, ensure_ascii=False).encode())


@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES)
def test_a_block_is_bounded_and_so_is_the_record_of_what_it_lacks(value: Any) -> None:
    block, cut = extract({"value": value})

    assert cut is not None
    assert size(block) <= EXTRACT_BYTES_MAX
    assert size(cut_as_plain(cut)) <= EXTRACT_BYTES_MAX


@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES)
def test_the_first_row_and_the_length_are_known_without_fetching(value: Any) -> None:
    block, cut = extract({"value": value})
    assert cut is not None
    fetch = Reference(URI, block["value"], cut.within["value"], path=("value",))

    told = rendered(
        [
            "{{ fetch.status }}",
            "{{ fetch.rows | length }}",
            "{{ fetch.rows[0].column_1 | length }}",
        ],
        {"fetch": fetch},
    )

    assert told == ["ok", 200, len(value["rows"][0]["column_1"])]
    assert needed("{{ fetch.rows[150].column_1 }}", {"fetch": fetch}) == {("value", "rows", 150)}


def test_the_widest_value_fits_by_losing_everything() -> None:
    keys = {f"{'k' * 120}{number}": number for number in range(100)}
    value = {key: keys for key in keys}

    assert extract({"value": value}).block == {}


def test_a_pipeline_of_large_results_is_worth_its_last_task() -> None:
    """Names sort otherwise than tasks run, and one element of a list is not their order."""
    tasks = {"fetch": table(40, 60), "clean": table(40, 60), "a_count": {"n": 2}}
    content = {"tasks": tasks, "order": ["fetch", "clean", "a_count"]}

    result = referred_result(content, ResultReference(type="object_store", uri=URI))
    value = value_of(result)

    assert plain_result(value) == {"n": 2}
    bindings = {"step": step_result(value)}
    assert rendered("{{ step.n }}", bindings) == 2
    assert rendered("{{ step.clean.row_count }}", bindings) == 200
    assert rendered("{{ step.fetch.rows | length }}", bindings) == 200


def test_a_pipeline_of_which_nothing_is_known_still_knows_its_last_task() -> None:
    keys = {f"{'k' * 120}{number}": number for number in range(100)}
    tasks = {f"task_{number}": {key: keys for key in keys} for number in range(20)}
    result = referred_result(
        {"tasks": tasks, "order": list(tasks)}, ResultReference(type="object_store", uri=URI)
    )

    bindings = {"step": step_result(value_of(result))}

    assert needed("{{ step.y }}", bindings) == {("tasks", "task_19", "y")}
