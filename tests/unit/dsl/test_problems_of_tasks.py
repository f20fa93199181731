"""What an author is told about tools, rules, templates and code."""

import pytest

from noetl.dsl.language.kinds import KINDS, RUNNING_KINDS
from tests.unit.dsl.writing import said, with_steps, with_tool

KNOWN = (
    "python, http, postgres, duckdb, sqlite, shell, noop, playbook, wait, workbook, nats, artifact,"
    " result_fetch, transfer, secrets or spark"
)
SQL = "'query', 'commands', 'query_b64', 'commands_b64' or 'script'"


def about_rule(rule: str) -> list[str]:
    tool = f"kind: noop\nspec:\n  policy:\n    rules:\n      - {rule}"
    return said(with_tool(tool))


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("{kind: python}", "a python tool needs 'code' or 'script'; add `code:`"),
        ("{kind: python, code: null}", "a python tool needs 'code' or 'script'; add `code:`"),
        ("{kind: http}", "an http tool needs 'url'; add `url:`"),
        ("{kind: postgres, auth: a}", f"a postgres tool needs {SQL}; add `query:`"),
        ("{kind: duckdb}", f"a duckdb tool needs {SQL}; add `query:`"),
        ("{kind: sqlite}", f"a sqlite tool needs {SQL}; add `query:`"),
        ("{kind: shell}", "a shell tool needs 'cmds'; add `cmds:`"),
        ("{kind: playbook}", "a playbook tool needs 'path' or 'catalog_id'; add `path:`"),
        ("{kind: workbook}", "a workbook tool needs 'name'; add `name:` with text"),
        ("{kind: nats}", "a nats tool needs 'operation'; add `operation:`"),
        (
            "{kind: artifact, action: get}",
            "an artifact tool needs 'result_ref', 'uri' or 'input'; add `result_ref:`",
        ),
        ("{kind: result_fetch}", "a result_fetch tool needs 'ref'; add `ref:`"),
        ("{kind: transfer, source: {}}", "a transfer tool needs 'target'; add `target:`"),
        ("{kind: secrets}", "a secrets tool needs 'name' or 'path'; add `name:`"),
        ("{kind: spark}", "a spark tool needs 'query', 'code' or 'function'; add `query:`"),
        ("{name: a}", f"a tool needs 'kind'; add `kind:` with {KNOWN}"),
        ("{type: python, code: a}", "'type' is not a key of a tool; call it `kind`"),
        (
            "{kind: htp}",
            f"there is no tool kind 'htp'; did you mean 'http'? known kinds: {KNOWN}",
        ),
        ("{kind: fax}", f"there is no tool kind 'fax'; known kinds: {KNOWN}"),
        ("python", "'tool' must be a mapping or a list, not 'python'; write it like {kind: noop}"),
        ("[]", "the pipeline has no tasks; add a task, or leave `tool` out"),
        ("[noop]", "a task must be a mapping, not text; write `kind:` and the tool's parameters"),
        ("{kind: http, url: 5}", "'url' must be text, not 5; put it in quotes"),
        (
            "{kind: http, url: a, methd: b}",
            "'methd' is not a key of an http tool; did you mean 'method'?",
        ),
        (
            "{kind: http, url: a, endpoint: b}",
            "'endpoint' and another key of an http tool are spellings of 'url'; keep one of them",
        ),
        (
            "{kind: noop, policy: {}}",
            "'policy' is not a key of a noop tool; put `policy` under `spec`",
        ),
        (
            "{kind: noop, effects: once}",
            "'effects' must be none or at_most_once, not 'once'; use one of these words",
        ),
        (
            "{kind: noop, auth: [a]}",
            "'auth' must be text or a mapping, not a list; write it like {name: value}",
        ),
        (
            "[{name: a, kind: noop}, {name: a, kind: noop}]",
            "step 'start' has two tasks named 'a'; give each task of a step its own name",
        ),
        (
            "{kind: workbook, name: a}",
            "the workbook has no task named 'a'; use a name from `workbook`",
        ),
        (
            "{kind: python, code: 'x ='}",
            "the code is not Python: invalid syntax (line 1 of the code); correct the code",
        ),
        (
            "{kind: http, url: '{{ a'}",
            "the template cannot be read: unexpected end of template, expected"
            " 'end of print statement'; compare the braces, quotes and words of the template",
        ),
    ],
)
def test_a_tool(tool: str, problem: str) -> None:
    assert said(with_tool(tool)) == [f"error: {problem}"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("{when: '{{ a }}'}", "error: a rule needs `then`; add `then: {do: …}`"),
        (
            "{then: {do: fail}}",
            "error: a rule needs `when` or `else`; add `when:` with a template, or write"
            " `else: {then: {do: …}}`",
        ),
        (
            "{when: '{{ a }}', then: {do: fail}, else: {do: fail}}",
            "error: a rule has `when` and `else`; make it two rules",
        ),
        (
            "{when: null, then: {do: fail}}",
            'error: `when` is empty; write a template: "{{ … }}"',
        ),
        (
            "{when: 3, then: {do: fail}}",
            "error: 'when' must be a template or a boolean, not 3; write it like"
            " \"{{ output.status == 'error' }}\"",
        ),
        (
            "{when: output.status, then: {do: fail}}",
            "error: the condition 'output.status' is plain text and is never evaluated; write it"
            ' as a template: "{{ … }}"',
        ),
        (
            "{else: {do: retri}}",
            "error: 'do' must be continue, retry, jump, break or fail, not"
            " 'retri'; did you mean 'retry'?",
        ),
        (
            "{else: {do: jump}}",
            "error: `do: jump` needs `to`; add `to:` with a task of the same step",
        ),
        (
            "{else: {do: jump, to: nowhere}}",
            "error: the jump leads to the task 'nowhere', which is not in this step; use a task of"
            " the same step: start",
        ),
        (
            "{else: {do: jump, to: strat}}",
            "error: the jump leads to the task 'strat', which is not in this step; did you mean"
            " 'start'?",
        ),
        (
            "{else: {do: jump, to: previous}}",
            "error: the first task has no previous one to jump to; name the task to jump to",
        ),
        (
            "{else: {do: retry, backoff: slow}}",
            "error: 'backoff' must be none, fixed, linear or exponential, not 'slow'; use one of"
            " these words",
        ),
        (
            "{else: {do: fail, attempts: 3}}",
            "warning: 'attempts' has no effect with `do: fail`; remove it, or write `do: retry`",
        ),
        (
            "{else: {set_vars: {a: 1}}}",
            "error: 'set_vars' is not a key of the action of a rule; use `set: {ctx.name: …}`",
        ),
        (
            "{else: fail}",
            "error: 'else' must be a mapping, not 'fail'; write it like {then: {do: continue}}",
        ),
    ],
)
def test_a_rule(rule: str, problem: str) -> None:
    assert about_rule(rule) == [problem]


def test_a_rule_after_one_that_always_matches() -> None:
    tool = "{kind: noop, spec: {policy: {rules: [{when: true, then: {}}, {else: {do: fail}}]}}}"

    assert said(with_tool(tool)) == [
        "warning: this rule is never asked: the rule before it always matches; put `else` last"
    ]


def test_a_jump_to_a_task_that_is_broken_is_no_second_problem() -> None:
    tool = """
        - {name: a, kind: htp}
        - {name: b, kind: noop, spec: {policy: {rules: [{else: {do: jump, to: a}}]}}}
    """

    assert len(said(with_tool(tool))) == 1


def test_an_unknown_parameter_that_is_no_misspelling_is_passed_on() -> None:
    (problem,) = said(with_tool("{kind: noop, zzz: 1}"))

    assert problem.startswith(
        "warning: 'zzz' is not a key of a noop tool; it is passed on as it is; known keys: "
    )


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {*RUNNING_KINDS, "resolve"}))
def test_a_kind_of_other_engines_is_known_but_does_not_run(kind: str) -> None:
    tool = f"kind: {kind}\nquery: a\nimage: a\nscript: {{}}\nsource: a\ndestination: a\nzzz: 1"

    assert said(with_tool(tool)) == [
        f"warning: '{kind}' is part of the language, but this engine has no such tool;"
        f" a step with it fails; tools that run: {KNOWN}"
    ]


@pytest.mark.parametrize(
    "code",
    [
        "return 1",
        "await x()",
        'result = f"{{a}} {b}"',
        "{{ anything at all",
        '"\\d"',
        "result = {{ page_size }}",
    ],
)
def test_code_that_may_become_python_is_left_alone(code: str) -> None:
    indented = code.replace("\n", "\n  ")

    assert said(with_tool(f"kind: python\ncode: |\n  {indented}")) == []


def test_code_of_a_workbook_task_is_checked_too() -> None:
    more = "workbook: [{name: a, tool: {kind: python, code: 'x ='}}]\n"

    assert said(with_steps("- step: start", more)) == [
        "error: the code is not Python: invalid syntax (line 1 of the code); correct the code"
    ]


@pytest.mark.parametrize(
    "template",
    [
        "{{ a }}",
        "{{a.b.c}} and {{ d }}",
        "{{ a | default([]) | length }}",
        "{% for x in y %}{{ x }}{% endfor %}",
        "{{ {'a': 1} | tojson }}",
        "no {#comment",
        "${#array[@]}",
        "}} {",
    ],
)
def test_templates_that_can_be_read(template: str) -> None:
    assert said(with_tool(f"kind: noop\nmessage: {template!r}")) == []


@pytest.mark.parametrize("template", ["{{ not }}", "{{ }}", "{{ a. }}", "{{ a b }}", "{% endif %}"])
def test_templates_that_cannot(template: str) -> None:
    (problem,) = said(with_tool(f'kind: noop\nmessage: "{template}"'))

    assert problem.startswith("error: the template cannot be read: ")


def test_a_template_over_several_lines_says_in_which_of_them() -> None:
    (problem,) = said(with_tool("kind: noop\nmessage: |\n  one\n  {{ a b }}\n"))

    assert "(line 2 of the text)" in problem


def test_a_template_that_is_nested_too_deeply_is_refused() -> None:
    (problem,) = said(with_tool(f'kind: noop\nmessage: "{{{{ {"(" * 50_000} }}}}"'))

    assert problem.startswith("error: the template cannot be read: it is nested too deeply")
