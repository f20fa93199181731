"""Arcs as a graph: back edges, joins, what is never reached, and what the rules say about it."""

import pytest

from noetl.domain.playbook.graph import Edge, Graph, graph_of
from noetl.domain.playbook.model import Arc, Metadata, Playbook, RouteMode, Router, Step
from noetl.domain.playbook.rules import RESERVED_NAMES
from noetl.dsl.check import check
from noetl.kernel.ids import StepName
from tests.unit.dsl.writing import said, with_steps

Arcs = dict[str, str]
"""Step -> its targets, with `*` before them for an inclusive router."""


def drawn(arcs: Arcs) -> Graph:
    steps = {}
    for name, targets in arcs.items():
        mode: RouteMode = "inclusive" if targets.startswith("*") else "exclusive"
        ways = tuple(Arc(step=StepName(target)) for target in targets.strip("*").split())
        steps[StepName(name)] = Step(name=StepName(name), next=Router(arcs=ways, mode=mode))
    return graph_of(Playbook(metadata=Metadata(name="a"), steps=steps, api_version="noetl.io/v2"))


def back(graph: Graph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.back_edges}


@pytest.mark.parametrize(
    ("arcs", "edges"),
    [
        ({"start": "a", "a": "b", "b": ""}, set()),
        ({"start": "start end"}, {("start", "start")}),
        ({"start": "a", "a": "b", "b": "a end"}, {("b", "a")}),
        ({"start": "a b", "a": "c", "b": "c", "c": "start"}, {("c", "start")}),
        ({"start": "a", "a": "b c", "b": "a", "c": "b"}, {("b", "a")}),
    ],
)
def test_an_arc_that_leads_back_re_runs_a_step(arcs: Arcs, edges: set[tuple[str, str]]) -> None:
    assert back(drawn(arcs)) == edges


@pytest.mark.parametrize(
    ("arcs", "joins"),
    [
        ({"start": "*a b", "a": "c", "b": "c", "c": ""}, {"c"}),
        ({"start": "a b", "a": "c", "b": "c", "c": ""}, set()),
        ({"start": "*a c", "a": "c", "c": ""}, {"c"}),
        # An exclusive choice inside one branch meets again without waiting.
        ({"start": "*a b", "a": "x y", "x": "z", "y": "z", "z": "", "b": ""}, set()),
        # After the join, an exclusive choice is no second one.
        (
            {"start": "*a b", "a": "j", "b": "j", "j": "x y", "x": "e", "y": "e", "e": ""},
            {"j"},
        ),
        # One fork inside another: both meet.
        (
            {"start": "*a b", "a": "*x y", "x": "m", "y": "m", "m": "e", "b": "e", "e": ""},
            {"m", "e"},
        ),
        # A way back is not waited for.
        ({"start": "a", "a": "*b c", "b": "a", "c": ""}, set()),
        ({"start": "*a", "a": ""}, set()),
    ],
)
def test_branches_that_run_at_the_same_time_meet_in_a_join(arcs: Arcs, joins: set[str]) -> None:
    assert drawn(arcs).joins == joins


def test_forward_arcs_point_to_the_right() -> None:
    graph = drawn({"start": "*a b", "a": "c", "b": "c", "c": "a end", "end": ""})
    rank = {name: number for number, name in enumerate(graph.order)}

    edges = [edge for name in graph.order for edge in graph.outgoing[name]]
    assert all(rank[e.source] < rank[e.target] for e in edges if e not in graph.back_edges)
    assert back(graph) == {("c", "a")}


def test_a_join_knows_what_it_may_have_to_wait_for() -> None:
    graph = drawn({"start": "*a b", "a": "c", "b": "c", "c": "start", "x": "c"})

    assert graph.upstream(StepName("c")) == {"start", "a", "b"}
    assert graph.incoming[StepName("c")] == (
        Edge(StepName("b"), 0, StepName("c")),
        Edge(StepName("a"), 0, StepName("c")),
    )


def test_what_no_arc_leads_to_is_unreachable() -> None:
    assert drawn({"start": "end", "a": "b", "b": "a", "end": ""}).unreachable == ("a", "b")


def test_a_chain_longer_than_the_stack_is_followed() -> None:
    arcs = {f"s{n}": f"s{n + 1}" for n in range(20_000)} | {"s20000": "s0"}

    assert back(drawn(arcs)) == {("s20000", "s0")}


@pytest.mark.parametrize(
    ("steps", "more", "problem"),
    [
        (
            "- {step: start, next: [midle]}\n- {step: middle, next: start}",
            "",
            "error: the arc of step 'start' leads to the step 'midle', which does not exist;"
            " did you mean 'middle'?",
        ),
        (
            "- {step: start, next: nowhere}",
            "",
            "error: the arc of step 'start' leads to the step 'nowhere', which does not exist;"
            " use an existing step, or `end`: start or end",
        ),
        (
            "- {step: start}\n- {step: a, next: start}",
            "",
            "warning: step 'a' is never reached from 'start'; add an arc that leads to it, or"
            " remove it",
        ),
        (
            "- {step: start, next: {arcs: [{step: a}, {step: end, when: '{{ x }}'}]}}\n- {step: a}",
            "",
            "warning: this arc of step 'start' is taken only when the step fails: the one before"
            " it has no condition and comes first; give the earlier arc a `when`, put it last,"
            " or use"
            " `spec: {mode: inclusive}`",
        ),
        (
            "- {step: start, next: {arcs: [{step: end, on: loop.done}]}}",
            "",
            "warning: `on: loop.done` never happens: step 'start' has no loop;"
            " use `on: call.done`, or leave `on` out",
        ),
        (
            "- {step: begin}",
            "executor: {spec: {entry_step: begn}}\n",
            "error: entry_step names the step 'begn', which does not exist; did you mean 'begin'?",
        ),
        (
            "- {step: begin}",
            "executor: {spec: {final_step: zzz}}\n",
            "error: final_step names the step 'zzz', which does not exist; use a step of this"
            " playbook: begin",
        ),
    ],
)
def test_a_graph_that_makes_no_sense(steps: str, more: str, problem: str) -> None:
    assert problem in said(with_steps(steps, more))


@pytest.mark.parametrize(
    "arc", ["{step: b, when: '{{ error }}'}", "{step: b, when: '{{ outcome.status == 1 }}'}"]
)
def test_an_arc_for_failures_may_come_after_the_one_for_success(arc: str) -> None:
    steps = f"- {{step: start, next: {{arcs: [{{step: a}}, {arc}]}}}}\n- {{step: a}}\n- {{step: b}}"
    assert "this arc" not in "".join(said(with_steps(steps, "")))


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_a_step_cannot_have_a_name_that_templates_need(name: str) -> None:
    assert said(with_steps(f"- {{step: {name}}}")) == [
        f"warning: templates cannot read the result of a step named '{name}':"
        f" {{{{ {name} }}}} means something else; choose another name"
    ]


@pytest.mark.parametrize(
    "steps",
    [
        "- {step: start, next: end}",
        "- {step: start, next: {arcs: [{step: end, when: '{{ a }}'}, {step: end}]}}",
        "- {step: start, next: {spec: {mode: inclusive}, arcs: [{step: end}, {step: end}]}}",
        "- {step: start, next: {arcs: [{step: end, on: call.partial}, {step: end}]}}",
        "- {step: start, next: {arcs: [{step: start, when: '{{ output.more }}'}]}}",
    ],
)
def test_a_graph_that_does(steps: str) -> None:
    assert said(with_steps(steps)) == []


@pytest.mark.parametrize(
    ("steps", "place"),
    [
        ("- {step: a, next: a}", (5, 21)),
        ("- {step: a, next: b}\n- {step: b, next: a}", (6, 21)),
        ("- {step: a, next: [b, c]}\n- {step: b}\n- {step: c, next: a}", (7, 21)),
        (
            "- {step: a, next: {arcs: [{step: b, when: '{{ workload.x }}'}, {step: a}]}}\n"
            "- {step: b, next: a}",
            (5, 73),
        ),
    ],
)
def test_a_way_back_that_nothing_can_leave_is_warned_of(steps: str, place: tuple[int, int]) -> None:
    problems = check(with_steps(steps)).problems
    told = [each for each in problems if "no step in between can end" in each.message]
    assert (told[0].line, told[0].column, told[0].severity) == (*place, "warning")
    assert "`when`" in told[0].fix


@pytest.mark.parametrize(
    "steps",
    [
        "- {step: a, next: {arcs: [{step: a, when: '{{ output.more }}'}]}}",
        "- {step: a, next: {arcs: [{step: a, when: '{{ output.more }}'}, {step: end}]}}",
        "- {step: a, next: b}\n- {step: b, next: {arcs: [{step: c, when: '{{ output.x }}'},"
        " {step: a}]}}\n- {step: c}",
        "- {step: a, next: {arcs: [{step: a, on: call.error}]}}",
        "- {step: a, next: b}\n- {step: b, next: end}",
    ],
)
def test_a_way_back_that_a_condition_can_leave_is_not(steps: str) -> None:
    assert not [each for each in said(with_steps(steps)) if "can end" in each]
