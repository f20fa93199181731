"""Steps, loops, routes and the document: what each shape of the text becomes."""

import pytest

from noetl.domain.playbook.loop import Collection, Cursor, Fanout, FramePolicy, Loop
from noetl.domain.playbook.model import Arc, KeychainEntry, Metadata, Router
from noetl.domain.playbook.values import Assignment, Credential, Output, ResultStore, Selection
from noetl.kernel.ids import StepName
from tests.unit.dsl.writing import HEAD, playbook, step, steps, with_steps


def loop(text: str) -> Loop:
    made = step(f"- step: start\n  loop: {text}\n  tool: {{kind: noop}}").loop
    assert made is not None
    return made


def router(text: str) -> Router:
    return step(f"- step: start\n  next: {text}\n- {{step: a}}\n- {{step: b}}").next


def arc(name: str, **more: object) -> Arc:
    return Arc(step=StepName(name), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("a", Router(arcs=(arc("a"),))),
        ("end", Router(arcs=(arc("end"),))),
        ("[a]", Router(arcs=(arc("a"),))),
        ("[a, b]", Router(arcs=(arc("a"), arc("b")), mode="inclusive")),
        ("[{step: a, when: '{{ x }}'}, b]", Router(arcs=(arc("a", when="{{ x }}"), arc("b")))),
        ("{arcs: [{step: a}]}", Router(arcs=(arc("a"),))),
        ("{arcs: []}", Router()),
        (
            "{spec: {mode: inclusive, on_no_match: quiet}, arcs: [{step: a, when: true}]}",
            Router(arcs=(arc("a"),), mode="inclusive", on_no_match="quiet"),
        ),
        ("{arcs: [{step: a, on: call.partial}]}", Router(arcs=(arc("a", on="call.partial"),))),
        (
            "{arcs: [{step: a, args: {x: 1}}]}",
            Router(arcs=(arc("a", set=(Assignment(scope="ctx", name="x", value=1),)),)),
        ),
        (
            "{arcs: [{step: a, set: {ctx.x: '{{ y }}'}}]}",
            Router(arcs=(arc("a", set=(Assignment(scope="ctx", name="x", value="{{ y }}"),)),)),
        ),
    ],
)
def test_next_is_written_in_several_shapes(written: str, made: Router) -> None:
    assert router(written) == made


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("{in: [1, 2]}", Loop(over=Collection(value=[1, 2]))),
        (
            "{in: '{{ rows }}', iterator: row, spec: {mode: parallel, max_in_flight: 5}}",
            Loop(
                over=Collection(value="{{ rows }}"),
                iterator="row",
                mode="parallel",
                max_in_flight=5,
            ),
        ),
        (
            "{in: {a: 1}, spec: {max_in_flight: '{{ n }}', engine: spark, policy: {exec: x}}}",
            Loop(
                over=Collection(value={"a": 1}),
                max_in_flight="{{ n }}",
                engine="spark",
                policy={"exec": "x"},
            ),
        ),
        ("{in: [1], engine: local}", Loop(over=Collection(value=[1]), engine="local")),
        (
            "{in: [1], spec: {mode: fanout, fanout: {fail_fast: true, allow_partial: false,"
            " max_job_retries: 0, iter_key: '{{ item }}'}}}",
            Loop(
                over=Collection(value=[1]),
                mode="fanout",
                fanout=Fanout(
                    fail_fast=True, allow_partial=False, shard_retries_max=0, key="{{ item }}"
                ),
            ),
        ),
        (
            "{cursor: {kind: postgres, auth: pg, claim: SELECT 1, options: {max_iterations: 5}}}",
            Loop(
                over=Cursor(
                    kind="postgres",
                    claim="SELECT 1",
                    auth=(Credential(name="pg"),),
                    options={"max_iterations": 5},
                ),
                mode="cursor",
            ),
        ),
    ],
)
def test_a_loop_is_written_in_several_shapes(written: str, made: Loop) -> None:
    assert loop(written) == made


@pytest.mark.parametrize(
    ("written", "frame"),
    [
        (
            "frame: {max_rows: 50, max_seconds: 30, max_bytes: 9, lease_seconds: '{{ s }}',"
            " heartbeat_seconds: 30, row_concurrency: 2, process: frame, verify_ipc: true,"
            " retry_mode: whole_frame, max_attempts: 3}",
            FramePolicy(
                rows_max=50,
                seconds_max=30.0,
                bytes_max=9,
                lease_seconds="{{ s }}",
                heartbeat_seconds=30.0,
                row_concurrency=2,
                process="frame",
                verify_ipc=True,
                attempts_max=3,
            ),
        ),
        (
            "frame_policy: {size: 5, duration_ms: 1500, memory_bytes: 9, parallelism: 8}",
            FramePolicy(rows_max=5, seconds_max=1.5, bytes_max=9, row_concurrency=8),
        ),
        ("frame: {max_rows: '{{ n }}'}", FramePolicy(rows_max="{{ n }}")),
        ("frame: null", FramePolicy()),
    ],
)
def test_a_frame_policy_has_aliases_and_templates(written: str, frame: FramePolicy) -> None:
    assert loop(f"{{in: [1], spec: {{{written}}}}}").frame == frame


def test_the_step_may_name_the_mode_of_its_loop() -> None:
    made = step(
        """
        - step: start
          spec: {loop_mode: fanout, fanout: {max_shard_retries: 5}}
          loop: {in: [1]}
          tool: {kind: noop}
        """
    ).loop

    assert made is not None
    assert (made.mode, made.fanout.shard_retries_max) == ("fanout", 5)


def test_the_executor_may_name_the_mode_of_loops_that_name_none() -> None:
    first, second, third = steps(
        """
        - {step: start, loop: {in: [1]}, next: b}
        - {step: b, loop: {in: [1], spec: {mode: sequential}}, next: c}
        - {step: c, loop: {cursor: {kind: sqlite, claim: SELECT 1}}}
        """,
        "executor: {spec: {loop_mode: parallel}}\n",
    )

    modes = [each.loop.mode for each in (first, second, third) if each.loop is not None]
    assert modes == ["parallel", "sequential", "cursor"]


def test_a_step_carries_what_was_said_about_it() -> None:
    made = step(
        """
        - step: start
          desc: words
          args: {a: 1}
          spec: {timeout: 30s}
          set: {ctx.a: 1, b: 2}
          output:
            store: {kind: s3, bucket: b, ttl: 5, auth: c}
            output_select: [x]
            inline_max_bytes: 10
            scope: step
            as: other
        """
    )

    assert (made.description, made.input, made.timeout) == ("words", {"a": 1}, 30.0)
    assert made.set == (
        Assignment(scope="ctx", name="a", value=1),
        Assignment(scope="ctx", name="b", value=2),
    )
    assert made.output == Output(
        store=ResultStore(kind="s3", bucket="b", ttl=5, credential="c"),
        select=(Selection(path="x", name="x"),),
        inline_bytes_max=10,
        scope="step",
        name="other",
    )


@pytest.mark.parametrize(
    ("more", "names", "entry"),
    [
        ("executor: {spec: {entry_step: b}}\n", ["start", "b"], "b"),
        ("", ["a", "start"], "start"),
        ("", ["a", "b"], "a"),
    ],
)
def test_the_entry_is_the_named_one_else_start_else_the_first(
    more: str, names: list[str], entry: str
) -> None:
    text = "\n".join(f"- {{step: {name}}}" for name in names)

    assert playbook(with_steps(text, more)).entry == entry


def test_metadata_keeps_what_it_does_not_know() -> None:
    text = HEAD.replace(
        "{name: demo, path: demo/one}",
        "{name: n, path: p, version: 1.0, tags: 'a, b', labels: {c: d}, agent: x, owner: y}",
    )

    assert playbook(f"{text}workflow: [{{step: start}}]\n").metadata == Metadata(
        name="n",
        path="p",
        version="1.0",
        tags=("a", "b"),
        labels={"c": "d"},
        extra={"agent": "x", "owner": "y"},
    )


def test_unknown_maps_of_the_root_are_names_for_templates() -> None:
    made = playbook(with_steps("- step: start", "spec: {state: Oregon}\nother: {a: 1}\n"))

    assert made.exposed == {"spec": {"state": "Oregon"}, "other": {"a": 1}}


def test_keychain_entries() -> None:
    more = """\
        keychain:
          - {name: a, kind: oauth2, endpoint: http://x, scope: global, auto_renew: true}
          - {name: b, type: postgres, ref: pg}
    """

    assert playbook(with_steps("- step: start", more)).keychain == (
        KeychainEntry(
            name="a",
            kind="oauth2",
            scope="global",
            auto_renew=True,
            fields={"endpoint": "http://x"},
        ),
        KeychainEntry(name="b", kind="legacy", fields={"type": "postgres", "ref": "pg"}),
    )


def test_a_workbook_task_has_defaults_and_expectations() -> None:
    more = """\
        workbook:
          - name: flag
            tool: {kind: python, input: {t: null}, code: result = t, assert: {returns: [a]}}
    """
    made = playbook(with_steps("- {step: start, tool: {kind: workbook, name: flag}}", more))

    assert made.workbook["flag"].task.input == {"t": None}
    assert made.workbook["flag"].expectations == {"returns": ["a"]}
    assert made.steps[StepName("start")].tasks[0].parameters == {"name": "flag"}
