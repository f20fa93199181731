"""Every result names the one before it in its pipeline, stored or not."""

from typing import Any

from tests.unit.pipeline.rows import House, counting, job


def parents(calls: Any) -> list[tuple[str, str | None]]:
    return [
        (call.task, None if call.result.parent_ref is None else call.result.parent_ref.ref_id)
        for call in calls
    ]


def uri(part: str) -> str:
    return f"noetl://acme/ops/results/77/{part}/0/0/1@1"


async def test_a_task_names_the_result_before_its_own() -> None:
    house = House(http=counting())

    ended = await house.run(
        job(
            """
            - step: s
              tool:
                - {name: a, kind: http, url: u}
                - {name: look, kind: noop}
                - {name: b, kind: http, url: u}
                - {name: c, kind: http, url: u}
            """
        )
    )

    assert parents([*house.journal.calls, *ended.calls]) == [
        ("a", None),
        ("b", uri("s%3Alook")),
        ("c", uri("s%3Ab")),
    ]
    assert ended.parent == uri("s%3Ac")


async def test_a_run_after_a_jump_names_the_run_before_it() -> None:
    house = House(http=counting())
    rules = "[{when: '{{ output.data.n < 3 }}', then: {do: jump, to: a}}]"

    ended = await house.run(
        job(
            f"""
            - step: s
              tool:
                - {{name: a, kind: http, url: u, spec: {{policy: {{rules: {rules}}}}}}}
            """
        )
    )

    assert parents([*house.journal.calls, *ended.calls]) == [
        ("a", None),
        ("a", uri("s%3Aa")),
        ("a", uri("s%3Aa%232")),
    ]


async def test_a_lone_tool_has_no_result_before_it() -> None:
    house = House(http=counting())

    ended = await house.run(job("- step: s\n  tool: {kind: http, url: u}"))

    assert parents(ended.calls) == [("s", None)]
    assert ended.parent is None
    assert ended.recorded is not None
    assert ended.recorded.parent_ref is None
