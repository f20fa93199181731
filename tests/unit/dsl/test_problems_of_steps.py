"""What an author is told about steps, their routes and their loops."""

import pytest

from tests.unit.dsl.writing import said, with_steps

LOOP = "- step: start\n  tool: {{kind: noop}}\n  loop: {}"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("- {}", "error: a step needs 'step'; add `step:` with a plain name"),
        (
            "- start",
            "error: a step must be a mapping, not text; write `step:`, `desc:` or `spec:` …",
        ),
        ("- {step: 5}", "error: 'step' must be a plain name, not 5; put it in quotes"),
        (
            "- {step: '{{ a }}'}",
            "error: 'step' must be a plain name, not '{{ a }}'; write a plain name",
        ),
        (
            "- {step: start, next: b}\n- {step: b}\n- {step: b}",
            "error: the step 'b' exists already, in line 6; give each step its own name",
        ),
        (
            "- {step: start, tols: {kind: noop}}",
            "error: 'tols' is not a key of a step; did you mean 'tool'?",
        ),
        (
            "- {step: start, zzz: 1}",
            "error: 'zzz' is not a key of a step; known keys: step, desc, spec, input, loop, tool,"
            " set, output, emit or next",
        ),
        (
            "- {step: start, input: {}, args: {}}",
            "error: 'args' and another key of a step are spellings of 'input'; keep one of them",
        ),
        (
            "- {step: start, when: x}",
            "error: 'when' is not a key of a step; put `when` on the arcs that lead to this step",
        ),
        (
            "- {step: start, command: ls}",
            "warning: 'command' has no effect in a step; remove it",
        ),
        (
            "- {step: start, spec: {next_mode: inclusive}}",
            "error: 'next_mode' is not a key of spec of a step; use `next: {spec: {mode: …}}`",
        ),
        (
            "- {step: start, spec: {timeout: soon}}",
            "error: 'timeout' must be seconds, a duration such as 30s, or a template, not 'soon';"
            " write it like 30, 30s or 5m",
        ),
        (
            "- {step: start, spec: {policy: {failure: {mode: stop}}}}",
            "error: 'mode' must be fail_fast or continue, not 'stop'; use one of these words",
        ),
        (
            "- {step: start, spec: {policy: {admit: {rules: [{else: {allow: yes}}]}}}}",
            "error: 'allow' must be a boolean, true or false, not 'yes';"
            " in YAML 1.2 `yes` is text; write true",
        ),
        (
            "- {step: start, set: {workload.a: 1}}",
            "error: `set` cannot write 'workload.a': only ctx, iter and step have parts;"
            " write 'ctx.a'",
        ),
        ("- {step: start, set: {ctx: 1}}", "error: 'ctx' names nothing; write 'ctx.name'"),
        (
            "- {step: start, output: {store: {kind: s4}}}",
            "error: 'kind' must be auto, memory, kv, disk, object, s3, gcs, azure, db, duckdb,"
            " eventlog, inline, minio or pvc, not 's4'; use one of these words",
        ),
        (
            "- {step: start, emit: {object: order}}",
            "error: emit needs 'id'; add `id:` with text or a number",
        ),
        (
            "- {step: start, set: {ctx.a: ['{{ keychain.a.b }}']}}",
            "error: a secret of the keychain would reach the log here; use the keychain in"
            " parameters of a tool; what is set or decided is recorded",
        ),
    ],
)
def test_a_step(steps: str, problem: str) -> None:
    assert said(with_steps(steps)) == [problem]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            "5",
            "error: 'next' must be text, a list or a mapping, not 5; write it like"
            " {arcs: [{step: end}]}",
        ),
        ("{}", "error: next needs 'arcs'; add `arcs:` with a list"),
        (
            "{mode: inclusive, arcs: []}",
            "error: 'mode' is not a key of next; put `mode` under `spec`",
        ),
        (
            "{arcs: [{when: '{{ a }}'}]}",
            "error: an arc needs 'step'; add `step:` with a plain name",
        ),
        ("{arcs: [{to: end}]}", "error: 'to' is not a key of an arc; call it `step`"),
        ("[5]", "error: an arc needs the name of a step; write the name as text"),
        ("{arcs: [{step: end, cond: x}]}", "warning: 'cond' has no effect in an arc; remove it"),
        (
            "{arcs: [{step: end, on: call.partly}]}",
            "error: 'on' must be call.done, call.error, call.partial, loop.done, step.exit,"
            " step.done or step.failed, not 'call.partly'; did you mean 'call.partial'?",
        ),
        (
            "{arcs: [{step: end, when: a == 1}]}",
            "error: the condition 'a == 1' is plain text and is never evaluated; write it as a"
            ' template: "{{ … }}"',
        ),
        (
            "{arcs: [{step: end, when: '{{ keychain.a }}'}]}",
            "error: a secret of the keychain would reach the log here; use the keychain in"
            " parameters of a tool; what is set or decided is recorded",
        ),
        (
            "{spec: {mode: all}, arcs: []}",
            "error: 'mode' must be exclusive or inclusive, not 'all'; use one of these words",
        ),
    ],
)
def test_next(written: str, problem: str) -> None:
    assert problem in said(with_steps(f"- step: start\n  next: {written}"))


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            "{iterator: a}",
            'error: a loop needs `in` or `cursor`; add `in: "{{ … }}"` with a list,'
            " or `cursor:` with SQL that claims rows",
        ),
        (
            "{in: [1], cursor: {kind: postgres, claim: a}}",
            "error: a loop goes over `in` or over `cursor`, not both; remove one of the two",
        ),
        (
            "{in: rows}",
            "error: a loop goes over a list, and `in` is text; write a list, or a"
            ' template that gives one: "{{ … }}"',
        ),
        (
            "{in: [1], mode: parallel}",
            "error: 'mode' is not a key of a loop; put `mode` under `spec`",
        ),
        (
            "{in: [1], spec: {mode: paralel}}",
            "error: 'mode' must be sequential, parallel, fanout or cursor, not 'paralel';"
            " did you mean 'parallel'?",
        ),
        (
            "{in: [1], spec: {max_in_flight: 0}}",
            "error: 'max_in_flight' must be a whole number of at least 1, or a template, not 0;"
            ' write it like 5, or "{{ workload.count }}"',
        ),
        (
            "{in: [1], spec: {mode: cursor}}",
            "error: mode cursor needs a cursor, and this loop goes over `in`; write"
            " `mode: parallel`, or replace `in` by `cursor`",
        ),
        (
            "{cursor: {kind: sqlite, claim: a}, spec: {mode: fanout}}",
            "error: a loop over a cursor runs in mode cursor, not fanout; write `mode: cursor`, or"
            " leave it out",
        ),
        ("{cursor: {kind: sqlite}}", "error: a cursor needs 'claim'; add `claim:` with text"),
        (
            "{cursor: {kind: mongo, claim: a}}",
            "error: 'kind' must be postgres, sqlite or duckdb, not 'mongo'; use one of these words",
        ),
        (
            "{in: [1], spec: {frame: {duration_ms: 0}}}",
            "error: 'duration_ms' must be a number of milliseconds, not 0; write a number of"
            " milliseconds",
        ),
        (
            "{in: [1], spec: {frame: {size: 1, max_rows: 1}}}",
            "error: 'max_rows' and another key of a frame policy are spellings of 'max_rows';"
            " keep one of them",
        ),
        (
            "{in: [1], spec: {engine: dask}}",
            "error: 'engine' must be auto, spark or local, not 'dask'; use one of these words",
        ),
        (
            "{in: [1], spec: {fanout: {fail_fast: true}}}",
            "error: `fanout` has no effect: the loop of step 'start' runs in mode sequential;"
            " set `loop.spec.mode: fanout`, or remove `fanout`",
        ),
        (
            "{in: [1], iterator: ctx}",
            "warning: the iterator 'ctx' hides a name that templates need; choose another name for"
            " `iterator`",
        ),
        (
            "{in: '{{ keychain.a }}'}",
            "error: a secret of the keychain would reach the log here; use the keychain in"
            " parameters of a tool; what is set or decided is recorded",
        ),
    ],
)
def test_a_loop(written: str, problem: str) -> None:
    assert said(with_steps(LOOP.format(written))) == [problem]
