"""Results by name: every one has a name, and says where it lies and how large it is."""

from typing import Any

from noetl.domain.events import CallDone, CallPartial, Event
from noetl.domain.events.values import ParentReference, Result, ResultReference
from noetl.kernel import canonical_json
from noetl.runtime.result_index import ResultEntry, ResultIndex, results_of
from noetl.testing.given import Placed, at, given
from tests.unit.domain.happenings import (
    BERT,
    COMMAND,
    STARTED,
    STEP,
    abandoned,
    called,
    claimed,
    committed,
    completed,
    dispatched,
    failed,
    issued,
    left,
    loop_done,
    loop_started,
    stage_opened,
)

FEATHER = "application/vnd.apache.arrow.file"


def told(*happenings: Event | Placed) -> list[ResultEntry]:
    return results_of(given(STARTED, *happenings).events)


def names(entries: list[ResultEntry]) -> list[str]:
    return [entry.uri.partition("/results/")[2].partition("/")[2] for entry in entries]


def inline(**value: Any) -> Result:
    return Result(status="ok", context={"value": value})


def pipeline(*tasks: str) -> Result:
    context = {"tasks": {task: {"n": 1} for task in tasks}, "order": list(tasks)}
    return Result(status="ok", context=context)


def test_a_small_result_is_in_its_event() -> None:
    (entry,) = told(issued(), claimed(), called(), completed(result=inline(n=1)))

    assert names([entry]) == ["load/0/0/1@1"]
    assert (entry.kind, entry.step, entry.tier, entry.parent) == ("step", "load", "inline", None)
    assert entry.byte_length == len(canonical_json.encode({"value": {"n": 1}}))


def test_a_stored_result_says_what_its_reference_knows() -> None:
    reference = ResultReference(
        type="object_store",
        uri="noetl://default/default/results/1/load/0/0/1@1",
        sha256="ab" * 32,
        media_type=FEATHER,
        byte_length=269_000,
        row_count=1_200,
    )
    result = Result(status="ok", reference=reference, context={"extracted": {"value": []}})

    (entry,) = told(issued(), claimed(), completed(result=result))

    assert (entry.uri, entry.tier) == (reference.uri, "feather")
    assert (entry.byte_length, entry.row_count) == (269_000, 1_200)


def test_the_name_has_the_holder_that_reported_and_the_visit() -> None:
    entries = told(issued(visit=3), claimed(), claimed(BERT, 2), completed(2, result=inline(n=1)))

    assert names(entries) == ["load/0/0/2@3"]


def test_tasks_of_a_pipeline_are_parts_of_its_result() -> None:
    entries = told(
        issued(),
        claimed(),
        called(task="pay", effect="fired"),
        completed(result=pipeline("fetch", "pay", "count")),
    )

    assert names(entries) == [
        "load%3Afetch/0/0/1@1",
        "load%3Apay/0/0/1@1",
        "load%3Acount/0/0/1@1",
        "load/0/0/1@1",
    ]
    assert [entry.tier for entry in entries] == ["part", "part", "part", "inline"]


def test_a_call_with_a_result_of_its_own_names_the_one_before_it() -> None:
    parent = ParentReference(ref_id="noetl://default/default/results/1/load%3Afetch/0/0/1@1")
    own = Result(status="ok", context={"value": 5}, parent_ref=parent)

    entries = told(
        issued(),
        claimed(),
        called_with(own, task="pay"),
        failed(result=pipeline("fetch", "pay")),
    )

    (pay,) = [entry for entry in entries if entry.task == "pay"]
    assert (pay.tier, pay.parent) == ("inline", parent.ref_id)


def called_with(result: Result, **fields: Any) -> Placed:
    return at(CallDone(step=STEP, result=result, **fields), command_id=COMMAND)


def test_a_lone_tool_has_one_result_and_one_more_for_each_further_run() -> None:
    once = told(issued(), claimed(), called(task="get"), completed(result=inline(n=1)))
    twice = told(
        issued(),
        claimed(),
        called(task="get"),
        called(task="get", run=2),
        completed(result=inline(n=1)),
    )

    assert names(once) == ["load/0/0/1@1"]
    assert names(twice) == ["load%3Aget%232/0/0/1@1", "load/0/0/1@1"]


def test_calls_of_a_command_that_runs_are_known_already() -> None:
    index = ResultIndex()
    for event in given(STARTED, issued(), claimed(), called(task="pay")).events:
        assert index.add(event) == []

    assert names(index.open_calls()) == ["load%3Apay/0/0/1@1"]


def test_a_failure_without_a_result_has_none() -> None:
    assert told(issued(), claimed(), failed()) == []


def test_a_loop_has_the_outputs_of_its_frames_and_a_dataset() -> None:
    entries = told(
        loop_started(collection_size=80),
        stage_opened(),
        dispatched(ordinal=4, attempt=1),
        abandoned(),
        dispatched(BERT, ordinal=4, attempt=2),
        committed(BERT, outcomes=[{"index": 0, "status": "ok"}]),
        loop_done(80, result=Result(status="ok", context={"loop": {"count": 80}})),
    )

    assert names(entries) == ["load/4/0/2@1", "load@1"]
    assert [(entry.kind, entry.tier, entry.row_count) for entry in entries] == [
        ("frame", "inline", 50),
        ("loop", "inline", 80),
    ]


def test_frames_of_a_retried_loop_have_names_of_their_own() -> None:
    entries = told(loop_started(attempt=2), stage_opened(), dispatched(), committed())

    assert names(entries) == ["load/0/0/1001@1"]


def test_what_an_exit_says_itself_counts() -> None:
    entries = told(left(visit=2, result=inline(n=1)))

    assert names(entries) == ["load/0/0/1@2"]


def test_a_chunk_outside_its_event_is_a_result_of_its_own() -> None:
    inside = CallPartial(
        step=STEP, chunk_index=0, has_more=True, result=Result(status="ok"), task="t"
    )
    reference = ResultReference(
        type="object_store",
        uri="noetl://default/default/results/1/pages%3At/0/2/1@1",
        media_type="application/json",
        row_count=3,
    )
    outside = CallPartial(
        step=STEP,
        chunk_index=1,
        has_more=False,
        result=Result(status="ok", reference=reference),
        task="t",
    )
    found = told(inside, outside)

    assert [(entry.kind, entry.uri, entry.row_count) for entry in found] == [
        ("chunk", reference.uri, 3)
    ]
