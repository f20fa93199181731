"""Which steps follow from which ends."""

import pytest

from noetl.testing.story import Story

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"


def story(workflow: str, **payload: object) -> Story:
    return Story(HEAD + workflow, **payload)


CHAIN = """
workflow:
  - {step: start, tool: {kind: noop}, next: middle}
  - {step: middle, tool: {kind: noop}, next: last}
  - {step: last, tool: {kind: noop}}
"""


def test_a_chain_runs_one_step_after_the_other_and_completes() -> None:
    told = story(CHAIN)
    for step in ("start", "middle", "last"):
        assert told.open == [step]
        told.complete(step, {"from": step})
    assert told.status == "COMPLETED"
    (completed,) = told.of("playbook.completed")
    assert completed.step == "last"
    assert completed.result.context == {"value": {"from": "last"}}


def test_the_first_true_arc_of_an_exclusive_router_is_taken_alone() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    next:
      arcs:
        - {step: small, when: "{{ output.n < 10 }}"}
        - {step: large, when: "{{ output.n > 0 }}"}
        - {step: none}
  - {step: small, tool: {kind: noop}}
  - {step: large, tool: {kind: noop}}
  - {step: none, tool: {kind: noop}}
""")
    told.complete("start", {"n": 5})
    assert told.open == ["small"]


def test_a_steps_own_name_means_this_visit_in_its_set_and_its_guards() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.seen: "{{ start.n }}"}
    next:
      arcs:
        - {step: start, when: "{{ start.n < 2 and steps.start.n < 2 }}"}
        - {step: last, set: {ctx.left_with: "{{ start.n }}"}}
  - {step: last, tool: {kind: noop}}
""")
    told.complete("start", {"n": 1})
    assert (told.open, told.state.ctx) == (["start"], {"seen": 1})
    told.complete("start", {"n": 2})
    assert (told.open, told.state.ctx) == (["last"], {"seen": 2, "left_with": 2})


def test_the_payload_of_an_event_is_the_steps_result() -> None:
    told = story("""
workflow:
  - step: start
    tool: [{name: a, kind: noop}, {name: b, kind: noop}]
    next: {arcs: [{step: last, when: "{{ event.payload.n == 1 and event.payload.data.n == 1 }}"}]}
  - {step: last, tool: {kind: noop}}
""")
    told.complete("start", {"n": 1})
    assert told.open == ["last"]


JOIN = """
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
  - {step: left, tool: {kind: noop}, next: more}
  - {step: more, tool: {kind: noop}, next: meet}
  - {step: right, tool: {kind: noop}, next: meet}
  - {step: meet, tool: {kind: noop}}
"""


@pytest.mark.parametrize("order", [("right", "left", "more"), ("left", "more", "right")])
def test_a_join_runs_once_when_all_that_can_arrive_has_arrived(order: tuple[str, ...]) -> None:
    told = story(JOIN)
    for step in order:
        assert "meet" not in told.open
        told.complete(step)
    assert told.open == ["meet"]
    told.complete("meet")
    assert told.status == "COMPLETED"
    (entered,) = [each for each in told.of("step.enter") if each.step == "meet"]
    assert sorted(entered.arrived_from) == ["more", "right"]


def test_a_join_does_not_wait_for_a_branch_that_ended_elsewhere() -> None:
    told = story("""
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
  - step: left
    tool: {kind: noop}
    next: {spec: {on_no_match: quiet}, arcs: [{step: meet, when: "{{ output.go }}"}]}
  - {step: right, tool: {kind: noop}, next: meet}
  - {step: meet, tool: {kind: noop}}
""")
    told.complete("right")
    told.complete("left", {"go": False})
    assert told.open == ["meet"]
    told.complete("meet", "end")
    assert told.of("playbook.completed")[0].step == "meet"


BACK_EDGE = """
workload: {pages: 3}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.page: 1}
    next: fetch
  - step: fetch
    tool: {kind: noop}
    next:
      arcs:
        - {step: fetch, when: "{{ ctx.page < pages }}", set: {ctx.page: "{{ ctx.page + 1 }}"}}
        - {step: done}
  - {step: done, tool: {kind: noop}}
"""


def test_a_back_edge_enters_the_step_again_with_the_next_visit() -> None:
    told = story(BACK_EDGE)
    told.complete("start")
    for _ in range(3):
        told.complete("fetch")
    assert told.open == ["done"]
    assert [each.visit for each in told.of("step.enter") if each.step == "fetch"] == [1, 2, 3]
    assert told.state.ctx == {"page": 3}


def test_after_a_failure_only_arcs_written_for_it_are_taken() -> None:
    workflow = """
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: repair, when: "{{ output.error.kind == 'timeout' }}"}, {step: go_on}]}
  - {step: repair, tool: {kind: noop}}
  - {step: go_on, tool: {kind: noop}}
"""
    handled = story(workflow)
    handled.fail("start", kind="timeout")
    assert handled.open == ["repair"]
    handled.complete("repair")
    assert handled.status == "COMPLETED"

    unhandled = story(workflow)
    unhandled.fail("start", kind="auth")
    assert unhandled.status == "FAILED"
    (failed,) = unhandled.of("playbook.failed")
    assert (failed.step, failed.error.kind) == ("start", "auth")


def test_a_failure_lets_other_branches_end_and_starts_nothing_new() -> None:
    told = story(JOIN)
    told.fail("right")
    assert told.status == "RUNNING"
    told.complete("left")
    assert told.status == "FAILED"
    assert not [each for each in told.of("step.enter") if each.step == "more"]


def test_a_tolerated_failure_takes_unguarded_arcs() -> None:
    told = story("""
workflow:
  - step: start
    spec: {policy: {failure: {mode: continue}}}
    tool: {kind: noop}
    next: after
  - {step: after, tool: {kind: noop}}
""")
    told.fail("start")
    assert told.open == ["after"]


def test_what_a_step_sets_its_arcs_see() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.total: "{{ output.n + 1 }}", ctx.deep.name: kept}
    next: {arcs: [{step: yes_step, when: "{{ ctx.total == 3 and ctx.deep.name == 'kept' }}"}]}
  - {step: yes_step, tool: {kind: noop}}
""")
    told.complete("start", {"n": 2})
    assert told.open == ["yes_step"]
    assert told.state.ctx == {"total": 3, "deep": {"name": "kept"}}


def test_a_guard_that_cannot_be_judged_fails_the_step_when_nothing_else_matches() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: other, when: "{{ 1 / output.zero }}"}]}
  - {step: other, tool: {kind: noop}}
""")
    told.complete("start", {"zero": 0})
    assert told.status == "FAILED"
    assert told.of("playbook.failed")[0].error.kind == "template"


def test_a_guard_over_a_result_that_failed_does_not_hide_why_it_failed() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: other, when: "{{ start.n + 1 > 3 }}"}]}
  - {step: other, tool: {kind: noop}}
""")
    told.fail("start", kind="auth")
    assert told.of("playbook.failed")[0].error.kind == "auth"


def test_an_arc_to_an_end_that_does_not_exist_completes() -> None:
    told = story("""
workflow:
  - {step: start, tool: {kind: noop}, next: end}
""")
    told.complete("start", 7)
    assert told.status == "COMPLETED"


def test_end_runs_once_when_nothing_else_runs() -> None:
    told = story("""
workflow:
  - step: page
    tool: {kind: noop}
    set: {ctx.n: "{{ (ctx.n or 0) + 1 }}"}
    next:
      spec: {mode: inclusive}
      arcs: [{step: page, when: "{{ ctx.n < 3 }}"}, {step: save}]
  - {step: save, tool: {kind: noop}, next: end}
  - {step: end, tool: {kind: noop}}
""")
    for step in ("page", "save", "page", "save", "page", "save"):
        assert "end" not in told.open
        told.complete(step, 1)
    assert told.open == ["end"]
    told.complete("end", 1)
    assert told.status == "COMPLETED"
    assert [each.step for each in told.of("step.enter")].count("end") == 1


def test_events_name_arcs_by_what_happened() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    next:
      arcs:
        - {step: bad, when: "{{ event.name == 'call.error' }}"}
        - {step: good, when: "{{ event.name == 'call.done' }}"}
  - {step: bad, tool: {kind: noop}}
  - {step: good, tool: {kind: noop}}
""")
    told.complete("start")
    assert told.open == ["good"]


def test_deciding_twice_asks_for_nothing_twice() -> None:
    told = story(JOIN)
    before = len(told.events)
    told.tell()
    told.tell()
    assert len(told.events) == before
