"""What an `output` block asks for is what is kept, and every result names the one before it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import ResultName
from noetl.domain.playbook.values import Output, ResultStore, Selection
from noetl.kernel import canonical_json
from noetl.kernel.ids import ExecutionId, StepName
from noetl.pipeline.keeping import INSIDE_BYTES_MAX, Keeping, keeping_of_step
from noetl.templates.errors import NeedsPayload
from noetl.templates.extract import EXTRACT_BYTES_MAX
from noetl.templates.layered import PipelineResult, step_result
from noetl.templates.lookup import MISSING, look_up
from noetl.templates.recorded import (
    INLINE_BYTES_MAX,
    RecordedResults,
    content_of,
    referred_result,
    value_of,
)
from noetl.templates.selected import SELECTED_BYTES_MAX, chosen_of, with_chosen
from noetl.templates.table_rows import TableRows
from tests.memory_results import memory_results
from tests.unit.dsl.writing import step
from tests.unit.pipeline.rows import SCOPE, House, counting, job

NAME = ResultName(
    tenant=SCOPE.tenant_id,
    project=SCOPE.organization_id,
    execution_id=ExecutionId("77"),
    step=StepName("load"),
)
LARGE: dict[str, Any] = {
    **{f"field_{number}": "y" * 200 for number in range(600)},
    "status": "fine",
    "note": "z" * 3_000,
    "about": {"kind": "table", "tags": ["a" * 900, "b" * 900], "deep": {"er": {"most": 7}}},
}


def select(*paths: str, **renamed: str) -> tuple[Selection, ...]:
    plain = tuple(Selection(path=path, name=path.rpartition(".")[2]) for path in paths)
    return plain + tuple(Selection(path=path, name=name) for name, path in renamed.items())


async def kept(value: Any, **output: Any) -> Result:
    return await Keeping(Output(**output)).record(memory_results(), NAME, value)


def read(result: Result, path: str, fetched: Any = None) -> Any:
    """As `{{ load.path }}` does, without a fetch unless it is given."""
    known = None if result.reference is None or fetched is None else {result.reference.uri: fetched}
    found = step_result(value_of(result, known))
    for part in path.split("."):
        found = look_up(found, part)
    return found


@pytest.mark.parametrize("kind", ["kv", "disk", "object", "s3", "gcs", "minio", "pvc", "db"])
async def test_a_kind_outside_the_event_is_outside_whatever_the_size(kind: str) -> None:
    result = await kept({"n": 1}, store=ResultStore(kind=kind))

    assert result.reference is not None
    assert result.reference.type == "object_store"
    assert (read(result, "n"), read(result, "_store")) == (1, kind)


@pytest.mark.parametrize("kind", ["auto", "memory"])
@pytest.mark.parametrize(("more", "is_stored"), [(0, False), (1, True)])
async def test_by_size_the_budget_decides(kind: str, more: int, is_stored: bool) -> None:
    text = "x" * (INLINE_BYTES_MAX - len('{"value":""}') + more)

    result = await kept(text, store=ResultStore(kind=kind))

    assert (result.reference is not None) is is_stored


@pytest.mark.parametrize("kind", ["eventlog", "inline"])
async def test_inside_the_event_there_is_more_room_but_not_without_end(kind: str) -> None:
    most = "x" * (INSIDE_BYTES_MAX - len('{"value":""}'))

    assert (await kept(most, store=ResultStore(kind=kind))).reference is None
    assert (await kept(most + "x", store=ResultStore(kind=kind))).reference is not None


async def test_a_limit_of_its_own_is_kept_to_within_the_budget() -> None:
    value = {"text": "x" * 1_000}

    assert (await kept(value, inline_bytes_max=1_000)).reference is not None
    assert (await kept(value, inline_bytes_max=2_000)).reference is None
    large = {"text": "x" * INLINE_BYTES_MAX}
    assert (await kept(large, inline_bytes_max=10 * INLINE_BYTES_MAX)).reference is not None


async def test_the_store_has_the_usual_limit_and_a_playbook_may_only_ask_for_less() -> None:
    async def is_stored(characters: int, **output: Any) -> bool:
        store = memory_results()
        store.inline_bytes_max = 1_000
        result = await Keeping(Output(**output)).record(store, NAME, "x" * characters)
        return result.reference is not None

    assert (await is_stored(500), await is_stored(1_500)) == (False, True)
    assert await is_stored(1_500, inline_bytes_max=5_000)
    assert await is_stored(500, inline_bytes_max=100)


async def test_selected_fields_of_a_large_result_need_no_fetch() -> None:
    result = await kept(LARGE, select=select("status", "note", "about.tags", "about.deep.er"))

    assert read(result, "status") == "fine"
    assert read(result, "note") == LARGE["note"]
    assert read(result, "about.tags") == LARGE["about"]["tags"]
    assert read(result, "about.deep.er") == {"most": 7}
    assert len(canonical_json.encode(result)) < 3 * EXTRACT_BYTES_MAX + SELECTED_BYTES_MAX


async def test_without_a_selection_the_same_fields_have_to_be_fetched() -> None:
    result = await kept(LARGE)

    with pytest.raises(NeedsPayload):
        str(read(result, "note"))


async def test_what_is_not_selected_is_still_there_to_be_fetched() -> None:
    result = await kept(LARGE, select=select("note"))

    with pytest.raises(NeedsPayload):
        str(read(result, "field_599"))
    assert read(result, "field_599", content_of(LARGE)) == "y" * 200
    assert read(result, "nowhere", content_of(LARGE)) is MISSING


async def test_a_selected_field_that_is_too_large_is_shortened_and_fetched() -> None:
    value = {**LARGE, "huge": "h" * (SELECTED_BYTES_MAX + 1)}

    result = await kept(value, select=select("huge", "note"))

    assert read(result, "note") == LARGE["note"]
    with pytest.raises(NeedsPayload):
        str(read(result, "huge"))


@pytest.mark.parametrize("kind", ["auto", "object"])
async def test_a_small_result_is_not_reduced_to_what_is_selected(kind: str) -> None:
    result = await kept({"a": 1, "b": 2}, select=select("a"), store=ResultStore(kind=kind))

    assert (read(result, "a"), read(result, "b")) == (1, 2)


@pytest.mark.parametrize("value", [{"about": {"kind": "small"}}, LARGE], ids=["small", "large"])
async def test_a_selected_field_goes_by_its_other_name_too(value: dict[str, Any]) -> None:
    result = await kept(value, select=select("about.kind", sort="data.about.kind"))

    kind = value["about"]["kind"]
    assert (read(result, "sort"), read(result, "kind")) == (kind, kind)
    assert read(result, "about.kind") == kind
    assert read(result, "sort", content_of(value)) == kind


async def test_another_name_for_a_field_that_is_not_at_hand_is_a_need_only_when_asked() -> None:
    value = {"rows": ["r" * 100] * 2_000, "n": 5}

    result = await kept(value, select=select(lines="rows"))

    assert read(result, "n") == 5
    assert len(read(result, "lines")) == 2_000
    with pytest.raises(NeedsPayload):
        look_up(read(result, "lines"), 1_999)


async def test_a_field_of_its_own_is_not_hidden_by_a_selected_one() -> None:
    result = await kept(
        {"status": "fine", "inner": {"status": "odd"}}, select=select("inner.status")
    )

    assert read(result, "status") == "fine"


async def test_names_go_on_in_the_body_of_a_response() -> None:
    response = {"status_code": 200, "data": {"token": "t" * 2_000, "rest": ["x" * 100] * 2_000}}

    result = await kept(response, select=select("token"))

    assert read(result, "token") == "t" * 2_000


@pytest.mark.parametrize("value", [None, [1, 2], "text", 7])
async def test_of_what_has_no_fields_nothing_is_selected(value: Any) -> None:
    result = await kept(value, select=select("a", b="a.c"))

    assert result.context == {"value": value}


async def test_the_preview_may_be_smaller() -> None:
    shown = (await kept(LARGE, preview_bytes_max=200)).context["extracted"]
    usual = (await kept(LARGE, preview_bytes_max=10**6)).context["extracted"]

    assert len(canonical_json.encode(shown)) <= 200
    assert 200 < len(canonical_json.encode(usual)) <= EXTRACT_BYTES_MAX


async def test_a_result_is_found_by_its_other_name_too() -> None:
    results = RecordedResults({StepName("load"): await kept({"n": 1})}, None, {"loaded": "load"})

    assert results["loaded"] == results["load"] == {"n": 1}
    assert "loaded" in results
    assert [*results] == ["load"]
    assert "elsewhere" not in results


class Rows:
    """A table that is open."""

    length = 3

    def row(self, index: int) -> dict[str, Any]:
        return self.rows()[index]

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        return [{"n": n, "text": "x" * 2_000} for n in range(self.length)][start:stop]


def test_rows_of_a_stored_table_stay_where_they_are() -> None:
    content = {"value": {"row_count": 3, "note": "z" * 3_000, "rows": TableRows(Rows())}}
    reference = ResultReference(type="object_store", uri=NAME.uri)
    result = referred_result(content, reference)

    chosen = chosen_of(content, select("rows", "note", lines="rows"))
    result = with_chosen(result, content, chosen, None)

    assert read(result, "note") == "z" * 3_000
    with pytest.raises(NeedsPayload):
        str(look_up(read(result, "lines"), 2))


PIPELINE = """
    - step: load
      tool:
        - {name: fetch, kind: noop, output: {output_select: [token]}}
        - {name: count, kind: noop}
      output: {output_select: [n, fetch.page, rows_read]}
    """


async def test_steps_and_tasks_of_a_pipeline_both_select() -> None:
    tasks = {
        "fetch": {"token": "t" * 1_500, "page": "p" * 1_500, "rows": ["x" * 100] * 2_000},
        "count": {"n": "n" * 1_500, "rest": ["x" * 100] * 2_000},
    }
    keeping = keeping_of_step(step(PIPELINE), None)

    result = await keeping.record(memory_results(), NAME, PipelineResult(tasks))

    assert read(result, "n") == "n" * 1_500
    assert read(result, "fetch.token") == "t" * 1_500
    assert read(result, "fetch.page") == read(result, "page") == "p" * 1_500
    with pytest.raises(NeedsPayload):
        str(look_up(read(result, "fetch.rows"), 1_999))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300),
    lambda values: st.lists(values, max_size=30) | st.dictionaries(st.sampled_from("abcd"), values),
    max_leaves=60,
)


@given(st.dictionaries(st.sampled_from("abcd"), plain), st.sampled_from(["a", "b.c", "d.a.b"]))
@settings(max_examples=60, deadline=None)
async def test_what_is_at_hand_is_what_would_be_fetched(value: dict[str, Any], path: str) -> None:
    result = await kept(value, select=select(path), inline_bytes_max=1, preview_bytes_max=1)

    there: Any = value
    for part in path.split("."):
        there = there.get(part, MISSING) if isinstance(there, dict) else MISSING
    if there is not MISSING and len(canonical_json.encode(there)) <= SELECTED_BYTES_MAX // 2:
        assert read(result, path) == there


async def test_the_result_of_a_lone_tool_is_kept_as_its_step_says() -> None:
    house = House(http=counting())

    ended = await house.run(
        job(
            """
            - step: s
              tool: {kind: http, url: u, output: {output_select: [n]}}
              output: {store: {kind: object}}
            """
        )
    )

    assert ended.recorded is not None
    assert ended.recorded.reference is not None
    assert ended.recorded.reference.uri == "noetl://acme/ops/results/77/s/0/0/1@1"
