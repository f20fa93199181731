"""Steps that their own rules keep out."""

from noetl.testing.story import Story
from tests.unit.decider.test_routing import story


def test_a_step_that_is_not_admitted_is_skipped_and_its_branch_goes_on() -> None:
    told = story(
        """
workflow:
  - {step: start, next: guarded}
  - step: guarded
    spec:
      policy:
        admit:
          rules:
            - {when: "{{ workload.open }}", then: {allow: true}}
            - {else: {then: {allow: false}}}
    tool: {kind: noop}
    next: after
  - {step: after, tool: {kind: noop}}
""",
        open=False,
    )
    assert told.open == ["after"]
    assert [each.step for each in told.of("step.skipped")] == ["guarded"]


def guarded(when: str, arc: str) -> Story:
    return story(f"""
workflow:
  - {{step: start, next: guarded}}
  - step: guarded
    spec: {{policy: {{admit: {{rules: [{{when: "{when}", then: {{allow: false}}}}]}}}}}}
    tool: {{kind: noop}}
    next: {{arcs: [{arc}]}}
  - {{step: after, tool: {{kind: noop}}}}
""")


def test_arcs_of_a_skipped_step_write_their_names() -> None:
    told = guarded("{{ true }}", "{step: after, set: {ctx.x: 5}}")
    assert told.open == ["after"]
    assert told.state.ctx["x"] == 5


def test_a_skipped_step_whose_arcs_cannot_be_judged_fails() -> None:
    told = guarded("{{ true }}", "{step: after, when: '{{ 1 / 0 > 1 }}'}")
    assert told.status == "FAILED"
    assert told.of("step.exit")[-1].error.kind == "template"


def test_a_step_whose_admission_cannot_be_judged_fails() -> None:
    told = guarded("{{ 1 / 0 > 1 }}", "{step: after}")
    assert told.status == "FAILED"
    assert "admission of step 'guarded'" in told.of("step.exit")[-1].error.message
