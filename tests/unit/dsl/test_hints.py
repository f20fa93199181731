"""Keys of other engines: they are taken, and whoever writes them is told what they do here."""

import pytest

from noetl.dsl.schema import RECORDS, playbook_schema
from tests.unit.dsl.writing import said, with_steps, with_tool

HINT = "is a hint for other engines and has no effect: "


def about_executor(executor: str) -> list[str]:
    return said(with_steps("- {step: start}", f"executor: {executor}\n"))


def about_entry(more: str, kind: str = "static, map: {a: b}") -> list[str]:
    entry = f"{{name: k, kind: {kind}, {more}}}"
    return said(with_steps("- {step: start}", f"keychain: [{entry}]\n"))


@pytest.mark.parametrize(
    ("executor", "key"),
    [
        ("{requires: {tools: [http]}}", "'requires' of executor"),
        ("{spec: {final_step: start}}", "'final_step' of executor.spec"),
        ("{spec: {no_next_is_error: true}}", "'no_next_is_error' of executor.spec"),
        ("{spec: {policy: {limits: {}}}}", "'policy' of executor.spec"),
    ],
)
def test_what_an_executor_cannot_ask_for_is_told(executor: str, key: str) -> None:
    (problem,) = about_executor(executor)

    assert problem.startswith(f"warning: {key} {HINT}")


@pytest.mark.parametrize(
    "more",
    ["region: eu", "allowed_regions: [eu]", "no_broker_fallback: true", "scope: global"],
)
def test_what_a_secret_cannot_ask_for_is_told(more: str) -> None:
    (problem,) = about_entry(more)

    name = more.partition(":")[0]
    assert problem.startswith(f"warning: {name!r} of an entry of the keychain {HINT}")


@pytest.mark.parametrize("residency", ["strict", "advisory"])
def test_a_promise_about_its_region_is_told_not_to_be_kept(residency: str) -> None:
    (problem,) = about_entry(f"residency: {residency}")

    assert problem.startswith(f"warning: `residency: {residency}` is not kept")


def test_a_kind_of_secret_that_only_others_find_is_told_before_it_fails() -> None:
    more = "service_account_secret: x, target_audience: y"

    (problem,) = about_entry(more, kind="google_id_token")

    assert problem.startswith("warning: 'google_id_token' is part of the language, but")


def test_rules_and_frames_have_hints_too() -> None:
    policy = "{kind: noop, spec: {policy: {on_unmatched: fail, rules: []}}}"
    frame = "{in: [1], spec: {frame: {verify_ipc: true}}}"

    (unmatched,) = said(with_tool(policy))
    (verify,) = said(with_steps(f"- {{step: start, loop: {frame}, tool: {{kind: noop}}}}"))

    assert unmatched.startswith(f"warning: 'on_unmatched' of policy of a task {HINT}")
    assert verify.startswith(f"warning: 'verify_ipc' of a frame policy {HINT}")


def test_what_says_how_it_is_anyway_is_no_hint() -> None:
    assert about_executor("{spec: {no_next_is_error: false}}") == []
    assert about_entry("residency: none, scope: local") == []


def test_editors_show_of_every_hint_that_it_has_no_effect() -> None:
    schema = playbook_schema()["$defs"]
    hints = [
        (record.name, name) for record in RECORDS for name, key in record.keys.items() if key.hint
    ]

    assert len(hints) >= 15
    for record, name in hints:
        assert "without effect" in schema[record]["properties"][name]["description"]


def test_a_filter_of_other_engines_says_what_to_write() -> None:
    (problem,) = said(with_tool('{kind: noop, result: "{{ 5 | encrypt_secret }}"}'))

    assert problem == (
        "warning: templates have no filter 'encrypt_secret';"
        " leave it out: values of the `keychain` are hidden wherever they go"
    )
