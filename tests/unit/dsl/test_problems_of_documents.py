"""What an author is told about the document, and how problems are told at all."""

import pytest

from noetl.dsl.check import check
from noetl.dsl.problems import PROBLEMS_MAX
from tests.unit.dsl.writing import HEAD, places, said, with_steps


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            HEAD.replace("v2", "v3") + "workflow: [{step: start}]",
            "error: 'apiVersion' must be noetl.io/v2 or noetl.io/v10, not 'noetl.io/v3';"
            " did you mean 'noetl.io/v2'?",
        ),
        (
            "kind: Playbook\nmetadata: {name: a}\nworkflow: [{step: start}]",
            "error: a playbook needs 'apiVersion'; add `apiVersion:` with noetl.io/v2 or"
            " noetl.io/v10",
        ),
        (
            HEAD.replace("Playbook", "playbok") + "workflow: [{step: start}]",
            "error: 'kind' must be Playbook, not 'playbok'; did you mean 'Playbook'?",
        ),
        (
            "apiVersion: noetl.io/v1\nkind: Subscription\n",
            "error: this document is a Subscription, and only playbooks can be checked;"
            " write `kind: Playbook`, or leave the file out",
        ),
        (
            HEAD.replace("name: demo, ", "") + "workflow: [{step: start}]",
            "error: metadata needs 'name'; add `name:` with a plain name",
        ),
        (HEAD, "error: a playbook needs 'workflow'; add `workflow:` with a list"),
        (HEAD + "workflow: []", "error: the workflow has no steps; add at least one step"),
        (HEAD + "workflow:", "error: 'workflow' is empty; write a list"),
        (
            HEAD + "workflow: {start: noop}",
            "error: 'workflow' must be a list, not a mapping; write a list",
        ),
        (
            "- a",
            "error: a playbook must be a mapping, not a list; write `apiVersion:`, `kind:` or"
            " `metadata:` …",
        ),
        (
            HEAD + "vars: {a: 1}\nworkflow: [{step: start}]",
            "error: 'vars' is not a key of a playbook; put defaults under `workload`, and values"
            " of a run under `set`",
        ),
        (
            HEAD + "workflw: 1\nworkflow: [{step: start}]",
            "error: 'workflw' is not a key of a playbook; did you mean 'workflow'?",
        ),
        (
            HEAD + "wrkload: {a: 1}\nworkflow: [{step: start}]",
            "warning: 'wrkload' is not a key of a playbook; templates can read it as"
            " {{ wrkload }}; did you mean 'workload'?",
        ),
        (
            HEAD + "tracing: {a: 1}\nworkflow: [{step: start}]",
            "warning: 'tracing' has no effect in a playbook; remove it",
        ),
        (
            HEAD + "keychain: [{name: a, kind: oauth3}]\nworkflow: [{step: start}]",
            "error: 'kind' must be secrets, secret_manager, oauth2, credential, credential_ref,"
            " bearer, static or google_id_token, not 'oauth3'; did you mean 'oauth2'?",
        ),
        (
            HEAD + "keychain: [{name: a, kind: bearer}]\nworkflow: [{step: start}]",
            "error: a keychain entry of kind 'bearer' needs 'token'; add `token:`",
        ),
        (
            HEAD + "workbook: [{name: a, tool: {kind: noop}}, {name: a, tool: {kind: noop}}]\n"
            "workflow: [{step: start}]",
            "error: the workbook has two tasks named 'a'; give each task its own name",
        ),
        (
            HEAD + "workbook: [{name: a}]\nworkflow: [{step: start}]",
            "error: a workbook task needs 'tool'; add `tool:` with a mapping",
        ),
        (
            HEAD + "executor: {profile: cloud}\nworkflow: [{step: start}]",
            "error: 'profile' must be auto, local or distributed, not 'cloud';"
            " use one of these words",
        ),
    ],
)
def test_the_document(text: str, problem: str) -> None:
    assert said(text) == [problem]


def test_problems_stand_in_the_order_of_the_text() -> None:
    text = with_steps("- {step: start, zzz: 1, next: nowhere}\n- {step: b, tool: {kind: htp}}")

    assert places(text) == [
        (5, 19, "workflow[0].zzz"),
        (5, 33, "workflow[0].next"),
        (6, 12, "workflow[1].step"),
        (6, 28, "workflow[1].tool.kind"),
    ]


def test_a_mistake_behind_an_anchor_is_told_once() -> None:
    text = with_steps("- {step: start, tool: &t {kind: htp}, next: b}\n- {step: b, tool: *t}")

    assert places(text) == [(5, 35, "workflow[0].tool.kind")]


def test_a_warning_keeps_no_playbook_from_running() -> None:
    checked = check(with_steps("- {step: start, command: ls}"))

    assert checked.is_sound
    assert [problem.severity for problem in checked.problems] == ["warning"]


def test_an_error_does() -> None:
    checked = check(with_steps("- {step: start, next: nowhere}"))

    assert (checked.is_sound, checked.playbook) == (False, None)


def test_problems_are_bounded() -> None:
    keys = ", ".join(f"zzz{number}: 1" for number in range(PROBLEMS_MAX + 5))
    problems = said(with_steps(f"- {{step: start, {keys}}}"))

    assert len(problems) == PROBLEMS_MAX + 1
    assert problems[-1] == (
        f"error: there are more than {PROBLEMS_MAX} problems; only these are shown;"
        " fix these and check again"
    )
