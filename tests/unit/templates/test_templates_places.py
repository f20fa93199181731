"""Which names are visible where."""

from dataclasses import replace
from typing import Any

import pytest

from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant
from noetl.templates import places
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.errors import TemplateFailed, TemplateTooLarge
from noetl.templates.layered import Outcome, PipelineResult
from noetl.templates.secret import Secret
from tests.unit.templates.rendered import rendered

RUN = places.Run(
    execution_id=ExecutionId("77"),
    job_uuid="u-1",
    path="demo/one",
    version=3,
    payload={"x": 9},
    env={"REGION": "eu"},
    roots={"spec": {"state": "on"}},
)
KNOWN = places.Known(
    run=RUN,
    workload={"page_size": 10, "path": "own", "city": "Paris"},
    ctx={"page_size": 20},
    steps={"start": {"items": [1]}, "pipe": PipelineResult({"a": {"n": 1}, "b": {"m": 2}})},
    keychain={"api": {"token": Secret("s3cret")}},
)
STEP = places.for_step(KNOWN)
ROW = places.Iteration(iterator="item", item={"id": 5}, index=0, total=2, writes={"page": 3})
DONE = Outcome(result={"n": 1})


def seen(bindings: Bindings, *expressions: str) -> list[Any]:
    return [rendered(f"{{{{ {each} }}}}", bindings) for each in expressions]


def test_the_workload_sees_the_run_and_the_request() -> None:
    found = seen(
        places.for_workload(RUN),
        *("job.uuid", "job.execution_id", "job.id", "execution_id"),
        *("input.x", "payload.x", "env.REGION", "env.HOME", "path", "spec.state", "workload"),
    )

    assert found == ["u-1", "77", "77", "77", 9, 9, "eu", None, "demo/one", "on", None]


def test_a_step_sees_workload_ctx_and_steps_by_all_their_names() -> None:
    found = seen(
        STEP,
        *("page_size", "ctx.page_size", "workload.page_size", "ctx.city", "city"),
        *("start.items", "start.data.items", "steps.start.items", "pipe.m", "pipe.a.n"),
        *("keychain.api.token ~ ''", "spec.state", "version", "parent_execution_id"),
    )

    assert found[:5] == [20, 20, 10, "Paris", "Paris"]
    assert found[5:] == [[1], [1], [1], 2, 1, "***", "on", 3, None]


def test_an_authors_name_hides_a_handy_one_but_not_the_engines_own() -> None:
    known = places.Known(
        run=RUN, workload={"path": "own", "ctx": 1, "execution_id": 1, "result": 2}
    )
    bindings = places.for_set(places.for_step(known), DONE)

    assert seen(bindings, "path", "ctx.path", "execution_id", "result") == ["own", "own", "77", 2]


def test_what_set_wrote_hides_steps_and_steps_hide_the_workload() -> None:
    known = places.Known(
        run=RUN, workload={"a": "w", "b": "w"}, ctx={"a": "c"}, steps={"a": "s", "b": "s"}
    )

    assert seen(places.for_step(known), "a", "b", "ctx.b") == ["c", "s", "w"]


def test_a_row_sees_its_item_and_its_place() -> None:
    found = seen(
        places.for_iteration(STEP, ROW),
        *("item.id", "iter.item.id", "iter._index", "iter._first", "iter._last", "iter._total"),
        *("_index", "_total", "loop_index", "loop.index", "loop.length", "loop.done", "iter.page"),
        "page_size",
    )

    assert found == [5, 5, 0, True, False, 2, 0, 2, 0, 0, 2, False, 3, 20]


def test_a_cursor_row_does_not_know_how_many_there_are() -> None:
    row = places.Iteration(iterator="row", item={}, index=3)

    assert seen(places.for_iteration(STEP, row), "_total", "_last", "_first") == [None, None, False]


def test_frames_are_seen_by_row_and_as_a_whole() -> None:
    frame = places.Frame(index=2, base_index=100, rows=[{"id": 1}], row_count=1, policy={"m": 1})
    row = places.Iteration(iterator="row", item={"id": 1}, index=103)

    by_row = seen(
        places.for_frame_row(STEP, frame, row),
        *("_frame_index", "_frame_row_index", "row.id", "frame.index", "frame.row_count"),
    )
    whole = seen(
        places.for_frame(STEP, frame, "row"),
        *("row[0].id", "row_rows | length", "iter.row[0].id", "iter.row_rows[0].id"),
        *(
            "frame.row_count",
            "frame.index",
            "frame.base_index",
            "frame.policy.m",
            "frame.rows[0].id",
        ),
    )

    assert by_row == [2, 3, 1, 2, 1]
    assert whole == [1, 1, 1, 1, 1, 2, 100, 1, 1]


def test_a_claim_sees_its_frame_policy() -> None:
    bindings = places.for_claim(STEP, {"max_rows": 50}, "slot-1")

    assert seen(bindings, "__frame_max_rows | default(1) | int", "__worker_slot_id") == [
        50,
        "slot-1",
    ]
    assert seen(bindings, "__frame_policy.max_rows") == [50]
    assert seen(STEP, "__frame_max_rows | default(1) | int") == [1]


def test_a_task_sees_earlier_tasks_and_its_input() -> None:
    task = places.Task(
        name="shape",
        attempt=2,
        done={"fetch": {"n": 1}},
        previous=Outcome(result={"n": 1}),
        succeeded={"n": 1},
        bare={"page_doc": {"p": 4}},
        input={"doc": "d"},
    )
    found = seen(
        places.for_task(STEP, task),
        *("fetch.n", "fetch.data.n", "results.fetch.n", "_prev.n", "output.data.n", "outcome.n"),
        *("page_doc.p", "doc", "input.doc", "args.doc", "_task", "_attempt", "page_size"),
    )

    assert found == [1, 1, 1, 1, 1, 1, 4, "d", "d", "d", "shape", 2, 20]


def test_a_first_task_has_nothing_before_it() -> None:
    bindings = places.for_task(STEP, places.Task(name="a"))

    assert seen(bindings, "output is defined", "_prev is defined", "input.x") == [False, False, 9]


def test_rules_sets_and_arcs_see_the_outcome_their_own_way() -> None:
    outcome = Outcome(result={"status": "approved", "n": 1})
    event = {"name": "call.done", "step": "start"}

    assert seen(places.for_rule(STEP, outcome), "output.status", "outcome.n") == ["ok", 1]
    assert seen(places.for_set(STEP, outcome), "output.status", "result.n") == ["approved", 1]
    assert seen(places.for_arc(STEP, outcome, event), "event.name", "response.n") == [
        "call.done",
        1,
    ]


def test_the_result_of_the_step_before_gives_way_to_what_ends_here() -> None:
    step = places.for_step(replace(KNOWN, before="start"))

    assert seen(step, "result.items", "response.items") == [[1], [1]]
    assert seen(places.for_set(step, DONE), "result.n", "result.items") == [1, None]
    assert seen(places.for_rule(step, DONE), "result.n", "response.n") == [1, 1]
    assert seen(step.over({"result": "own"}), "result", "response.items") == ["own", [1]]
    assert seen(places.for_step(replace(KNOWN, before="later")), "result") == [None]


def test_the_arcs_of_a_loop_see_that_it_is_done() -> None:
    bindings = places.for_loop_done(STEP, DONE, {"name": "loop.done"}, 5)

    assert seen(bindings, "loop.done", "loop.length", "event.name") == [True, 5, "loop.done"]


@pytest.fixture
def timed() -> Bindings:
    return Bindings(
        layers=({"list": ["a", "b", "c"]},),
        moment=Instant("2026-11-15T21:04:05.000006Z"),
        chance=Chance("77/start/1"),
    )


def test_time_is_the_moment_that_was_given(timed: Bindings) -> None:
    assert seen(
        timed,
        *("now()", "now() ~ ''", "utcnow().isoformat()", "now().strftime('%Y-%m-%d %H:%M')"),
        *("now().year", "now().timestamp()", "timestamp() | int", "{'t': now()}", "now() | string"),
    ) == [
        *["2026-11-15T21:04:05.000006Z"] * 3,
        "2026-11-15 21:04",
        *(2026, 1794776645.000006, 1794776645),
        {"t": "2026-11-15T21:04:05.000006Z"},
        "2026-11-15T21:04:05.000006Z",
    ]


def test_time_and_chance_that_are_real_are_made_once_for_a_render_that_asks() -> None:
    made: list[str] = []

    def moment() -> Instant:
        made.append("moment")
        return Instant(f"2026-11-15T21:04:0{len(made)}.000000Z")

    def chance() -> Chance:
        made.append("chance")
        return Chance(f"seed {len(made)}")

    real = Bindings(layers=({"n": 1},)).asking(moment, chance)
    assert rendered("{{ n }}", real) == 1
    assert made == []
    assert rendered("{{ now() == now() }} {{ uuid() == uuid() }}", real) == "True False"
    assert made == ["moment", "chance"]
    assert rendered(["{{ uuid() }}"], real.at("row", 1)) != rendered(["{{ uuid() }}"], real)


def test_a_time_format_cannot_ask_for_a_width(timed: Bindings) -> None:
    with pytest.raises(TemplateFailed, match="has a width"):
        rendered("{{ now().strftime('%1000000000d') }}", timed)
    with pytest.raises(TemplateTooLarge, match="time format"):
        rendered("{{ now().strftime('%Y' * 1000) }}", timed)


def test_chance_falls_the_same_way_at_the_same_place(timed: Bindings) -> None:
    expressions = ["random()", "uuid()", "uuid4()", "list | random", "[random(), random()]"]

    first, again = seen(timed, *expressions), seen(timed, *expressions)
    elsewhere = seen(timed.at("row", 1), *expressions)

    assert first == again
    assert first[:2] != elsewhere[:2]
    assert first[4][0] != first[4][1]
    assert 0 <= first[0] < 1
    assert first[1][14] == "4"
    assert first[3] in ("a", "b", "c")
    assert rendered(["{{ uuid() }}", "{{ uuid() }}"], timed)[0] != rendered(
        "{{ uuid() }}{{ 1 }}", timed
    )


def test_two_ids_of_one_value_differ(timed: Bindings) -> None:
    one, other = rendered(["{{ uuid() }}", "{{ uuid() }}"], timed)

    assert one != other


def test_rows_and_tasks_have_chances_of_their_own(timed: Bindings) -> None:
    rows = [
        places.for_iteration(timed, places.Iteration(iterator="i", item=0, index=n)) for n in (0, 1)
    ]
    tasks = [places.for_task(timed, places.Task(name=name)) for name in ("a", "b")]

    assert len({rendered("{{ uuid() }}", each) for each in (*rows, *tasks)}) == 4
