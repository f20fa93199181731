"""Tools, pipelines and rules: what each shape of the text becomes."""

import pytest

from noetl.domain.playbook.model import AdmitRule
from noetl.domain.playbook.task import Break, Continue, Fail, Jump, Retry, Rule, TaskPolicy
from noetl.domain.playbook.values import Assignment, Credential, Emit, Selection
from tests.unit.dsl.writing import step, task


def rules(text: str) -> tuple[Rule, ...]:
    return task(f"kind: noop\nspec:\n  policy:\n    rules:\n      {text}").policy.rules


def test_a_mapping_is_one_task_named_after_its_step() -> None:
    only = step("- {step: load, tool: {kind: noop, message: hi}}")

    assert not only.is_pipeline
    assert [each.name for each in only.tasks] == ["load"]
    assert only.tasks[0].parameters == {"message": "hi"}


def test_a_mapping_may_have_a_name_of_its_own() -> None:
    assert task("{kind: noop, name: mine}").name == "mine"


def test_a_list_is_a_pipeline_of_named_unnamed_and_labelled_tasks() -> None:
    only = step(
        """
        - step: load
          tool:
            - {name: fetch, kind: noop}
            - {kind: noop}
            - shape: {kind: python, code: result = 1}
        """
    )

    assert only.is_pipeline
    assert [each.name for each in only.tasks] == ["fetch", "task_1", "shape"]


def test_a_step_without_a_tool_runs_nothing() -> None:
    assert step("- step: start").tasks == ()


def test_parameters_under_spec_count_as_the_tools_own() -> None:
    made = task(
        """
        kind: http
        method: PUT
        spec:
          method: GET
          endpoint: http://x
          input: {a: 1}
          policy: {rules: [{else: {do: break}}]}
        """
    )

    assert made.parameters == {"method": "PUT", "url": "http://x"}
    assert made.input == {"a": 1}
    assert made.policy.rules == (Rule(action=Break()),)


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("{kind: http, endpoint: 'http://x'}", {"url": "http://x"}),
        ("{kind: postgres, command: SELECT 1}", {"query": "SELECT 1"}),
        ("{kind: postgres, cmd: SELECT 1}", {"query": "SELECT 1"}),
        ("{kind: duckdb, queries: [a, b], db_path: x}", {"commands": ["a", "b"], "database": "x"}),
        ("{kind: postgres, command_b64: eA==}", {"query_b64": "eA=="}),
        ("{kind: shell, command: ls}", {"cmds": "ls"}),
        ("{kind: playbook, path: p, result_step: s}", {"path": "p", "return_step": "s"}),
        ("{kind: nats, operation: kv_get, name: n}", {"operation": "kv_get", "name": "n"}),
        (
            "{kind: http, url: 'http://x', params: {a: null}, body: null}",
            {"url": "http://x", "params": {"a": None}},
        ),
    ],
)
def test_parameters_are_kept_under_their_main_spelling(
    tool: str, parameters: dict[str, object]
) -> None:
    assert task(tool).parameters == parameters


def test_args_and_payload_are_other_words_for_input() -> None:
    assert task("{kind: python, args: {a: 1}, code: result = a}").input == {"a": 1}
    assert task("{kind: playbook, path: p, payload: {a: 1}}").input == {"a": 1}
    assert task("{kind: http, url: 'http://x', payload: {a: 1}}").parameters["payload"] == {"a": 1}


def test_a_workload_of_a_child_may_be_one_template() -> None:
    child = task("{kind: playbook, path: p, input: '{{ ctx.all }}', wait: false}")

    assert child.input == {}
    assert child.parameters == {"path": "p", "input": "{{ ctx.all }}", "wait": False}


@pytest.mark.parametrize(
    ("auth", "credentials"),
    [
        ("auth: pg", (Credential(name="pg"),)),
        ("credential: pg", (Credential(name="pg"),)),
        ('auth: "{{ pg_auth }}"', (Credential(name="{{ pg_auth }}"),)),
        ("auth: {type: bearer, key: token}", (Credential(name="token", type="bearer"),)),
        (
            "auth: {pg: {type: postgres, key: a, source: credential}, gcs: b}",
            (
                Credential(name="a", alias="pg", type="postgres", options={"source": "credential"}),
                Credential(name="b", alias="gcs"),
            ),
        ),
        (
            "auth: {gcs: {tool: hmac, key: c}}",
            (Credential(name="c", alias="gcs", type="hmac"),),
        ),
        (
            "auth: {gcs: {type: hmac, credential: c, scope: all}}",
            (Credential(name="c", alias="gcs", type="hmac", options={"scope": "all"}),),
        ),
    ],
)
def test_credentials_are_named_in_several_ways(
    auth: str, credentials: tuple[Credential, ...]
) -> None:
    assert task(f"kind: duckdb\nquery: SELECT 1\n{auth}").auth == credentials


def test_effects_timeout_and_business_objects() -> None:
    made = task(
        """
        kind: http
        url: http://x
        effects: at_most_once
        timeout: 1.5m
        emit: {object: order, id: "{{ iter.id }}", status: paid, attributes: {a: 1}}
        """
    )

    assert (made.effects, made.timeout) == ("at_most_once", 90.0)
    paid = Emit(object="order", id="{{ iter.id }}", status="paid", attributes={"a": 1})
    assert made.emit == (paid,)


def test_selected_fields_of_a_task() -> None:
    made = task("{kind: noop, output: {select: [{path: a.b, as: c}, x.y]}, output_select: [z]}")

    assert made.output is not None
    assert made.output.select == (
        Selection(path="a.b", name="c"),
        Selection(path="x.y", name="y"),
        Selection(path="z", name="z"),
    )


def test_set_of_a_task_is_for_the_tasks_that_follow() -> None:
    made = task("{kind: noop, set: {a: 1, ctx.b: 2, iter.c: 3, step.d: 4, ctx.e.f: 5}}")

    assert [(each.scope, each.name, each.value) for each in made.set] == [
        ("task", "a", 1),
        ("ctx", "b", 2),
        ("iter", "c", 3),
        ("step", "d", 4),
        ("ctx", "e.f", 5),
    ]


ERROR = "{{ output.status == 'error' }}"


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (f'- {{when: "{ERROR}", then: {{do: fail}}}}', Rule(when=ERROR, action=Fail())),
        ("- {when: true, then: {do: break}}", Rule(action=Break())),
        ("- {when: false, then: {do: break}}", Rule(when=False, action=Break())),
        ("- {else: {then: {do: fail}}}", Rule(action=Fail())),
        ("- {else: {do: fail}}", Rule(action=Fail())),
        ("- {else: null, then: {do: fail}}", Rule(action=Fail())),
        ("- {else: null}", Rule(action=Continue())),
        (
            "- {else: {set: {a: 1}}}",
            Rule(action=Continue(), set=(Assignment(scope="ctx", name="a", value=1),)),
        ),
        (
            "- {else: {do: continue, set_ctx: {a: 1}, set_iter: {b: 2}}}",
            Rule(
                action=Continue(),
                set=(
                    Assignment(scope="ctx", name="a", value=1),
                    Assignment(scope="iter", name="b", value=2),
                ),
            ),
        ),
    ],
)
def test_a_rule_is_written_in_several_shapes(written: str, rule: Rule) -> None:
    assert rules(written) == (rule,)


def test_a_jump_names_a_task_or_the_previous_one() -> None:
    made = step(
        """
        - step: start
          tool:
            - {name: a, kind: noop}
            - {name: b, kind: noop, spec: {policy: {rules: [{else: {do: jump, to: previous}}]}}}
            - {name: c, kind: noop, spec: {policy: {rules: [{else: {do: jump, to: a}}]}}}
        """
    )

    assert [each.policy.rules for each in made.tasks[1:]] == [
        (Rule(action=Jump(to="previous")),),
        (Rule(action=Jump(to="a")),),
    ]


@pytest.mark.parametrize(
    ("written", "retry"),
    [
        ("do: retry", Retry(attempts=3, backoff="fixed", delay=1.0)),
        (
            "do: retry, attempts: 5, backoff: exponential, delay: 0.5",
            Retry(attempts=5, backoff="exponential", delay=0.5),
        ),
        ("do: retry, backoff: none, max_attempts: '4'", Retry(attempts=4, backoff="none")),
        (
            "do: retry, backoff: linear, initial_delay: 2s, max_delay: 1m, jitter: true",
            Retry(backoff="linear", delay=2.0, delay_max=60.0, jitter=True),
        ),
        (
            "do: retry, backoff: fixed, delay: '1.5', jitter: 0.1",
            Retry(backoff="fixed", delay=1.5, jitter=0.1),
        ),
        ("do: retry, delay: 0, attempts: '{{ tries }}'", Retry(delay=0.0, attempts="{{ tries }}")),
        (
            "do: retry, backoff: exponential, multiplier: 3",
            Retry(backoff="exponential", multiplier=3.0),
        ),
    ],
)
def test_a_retry_says_how_often_and_how_long(written: str, retry: Retry) -> None:
    assert rules(f"- else: {{{written}}}") == (Rule(action=retry),)


def test_an_old_retry_becomes_a_rule_after_the_others() -> None:
    made = task(
        """
        kind: playbook
        path: p
        retry: {max_attempts: 4, initial_delay: 2, backoff_multiplier: 1.5}
        spec: {policy: {rules: [{when: "{{ a }}", then: {do: fail}}]}}
        """
    )

    again = Retry(attempts=4, backoff="exponential", delay=2.0, multiplier=1.5)
    assert made.policy.rules == (
        Rule(when="{{ a }}", action=Fail()),
        Rule(when="{{ output.status == 'error' }}", action=again),
    )


def test_a_policy_may_be_empty() -> None:
    assert task("{kind: noop, spec: {policy: {rules: []}}}").policy == TaskPolicy()
    assert task("{kind: noop, spec: {policy: null}}").policy == TaskPolicy()


def test_admission_rules() -> None:
    made = step(
        """
        - step: start
          spec:
            policy:
              admit:
                rules:
                  - {when: "{{ a }}", then: {allow: true}}
                  - {else: {then: {allow: false}}}
              failure: {mode: continue}
              lifecycle: {a: 1}
        """
    )

    rules = (AdmitRule(when="{{ a }}", allow=True), AdmitRule(when=True, allow=False))
    assert made.policy.admit == rules
    assert (made.policy.failure, made.policy.lifecycle) == ("continue", {"a": 1})
