"""Whatever an author writes, the checker answers with problems and never with a crash."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from noetl.dsl.check import Checked, check
from tests.unit.dsl.writing import HEAD

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "playbooks" / "v0.1"
CORPUS = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("**/*.yaml"))]
FRAGMENTS = (
    "{{",
    "}}",
    "{%",
    "%}",
    "\t",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    "&a",
    "*a",
    "<<: *a",
    ": ",
    "- ",
    "|",
    ">",
    "!!int",
    "---\n",
    "\x00",
    "\ud800",
    "null",
    "true",
    "on:",
    "-1",
    "9" * 40,
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["{{ a }}", "{{ a", "{% if a %}", "30s", "end", "start", "postgres", "python"]),
)
words = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "workflow",
        "step",
        "tool",
        "next",
        "arcs",
        "when",
        "then",
        "else",
        "do",
        "set",
        "loop",
        "in",
        "cursor",
        "claim",
        "spec",
        "policy",
        "rules",
        "mode",
        "frame",
        "auth",
        "input",
        "output",
        "store",
        "select",
        "emit",
        "retry",
        "keychain",
        "workbook",
        "executor",
        "admit",
        "to",
        "attempts",
        "code",
        "url",
        "query",
        "on",
        "<<",
    ]
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=30,
)


def sound_or_explained(checked: Checked) -> None:
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    assert (checked.playbook is None) == bool(errors)
    for problem in checked.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
        assert problem.fix


@given(st.text())
@example("\x85a: \u2028\n")
@example("? [a]\n: b")
@example("%YAML 1.2\n---\n!!map {a: b}")
def test_dsl_any_text(text: str) -> None:
    sound_or_explained(check(text))


@given(st.binary())
def test_dsl_any_bytes(data: bytes) -> None:
    sound_or_explained(check(data))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(CORPUS),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(FRAGMENTS)), max_size=4
    ),
)
def test_dsl_mutated_playbooks(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, cut, fragment in edits:
        at = int(where * len(text))
        text = text[:at] + fragment + text[at + cut :]

    sound_or_explained(check(text))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CORPUS), st.data())
def test_dsl_shuffled_lines(text: str, data: st.DataObject) -> None:
    lines = text.splitlines(keepends=True)
    order = data.draw(st.lists(st.integers(0, max(0, len(lines) - 1)), max_size=len(lines)))

    sound_or_explained(check("".join(lines[number] for number in order) if lines else ""))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(words, trees, max_size=6), st.lists(trees, max_size=4))
def test_dsl_trees_of_known_words(root: dict[str, object], steps: list[object]) -> None:
    """JSON is YAML, so any tree can be written down; most words then meet a wrong shape."""
    whole: dict[str, object] = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "a"},
    }
    whole |= {"workflow": [{"step": "start", **_as_map(step)} for step in steps]} | root

    sound_or_explained(check(_json(whole)))


@given(trees)
def test_dsl_what_json_says_yaml_says(tree: object) -> None:
    """Values come out as they went in: quotes keep text text, numbers stay numbers."""
    checked = check(f"{HEAD}workflow: [{{step: start}}]\nworkload: {{a: {_json(tree)}}}\n")

    if checked.playbook is not None:
        assert checked.playbook.workload == {"a": tree}


@pytest.mark.parametrize("lines", [8, 23])
def test_dsl_a_thousand_steps(lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    text = _thousand_steps(lines)
    began, busy = time.perf_counter(), time.process_time()

    checked = check(text)

    took, busy = time.perf_counter() - began, time.process_time() - busy
    assert checked.problems == ()
    with capsys.disabled():
        print(
            f"\n1,000 steps, {text.count(chr(10)):,} lines:"
            f" checked in {took:.2f} s ({busy:.2f} s CPU)"
        )


def _as_map(tree: object) -> dict[str, object]:
    return tree if isinstance(tree, dict) else {"tool": tree}


def _json(tree: object) -> str:
    return json.dumps(tree)


def _thousand_steps(lines: int) -> str:
    short = """\
  - step: s{0}
    tool:
      kind: http
      url: "{{{{ api_url }}}}/items/{0}"
    set: {{ctx.n: "{{{{ output.data.n }}}}"}}
    next:
      arcs:
        - {{step: {1}, when: "{{{{ event.name == 'call.done' and {0} > 0 }}}}"}}
"""
    long = """\
  - step: s{0}
    desc: step {0}
    tool:
      - name: fetch
        kind: http
        url: "{{{{ api_url }}}}/items/{0}"
        params: {{page: "{{{{ iter.page | default({0}) }}}}"}}
        spec:
          policy:
            rules:
              - when: "{{{{ output.status == 'error' and output.error.retryable }}}}"
                then: {{do: retry, attempts: 5, backoff: exponential, delay: 0.5}}
              - else:
                  then: {{do: continue, set: {{ctx.n{0}: "{{{{ output.data.n }}}}"}}}}
      - name: shape
        kind: python
        code: |
          result = {{"n": {0}}}
    next:
      spec: {{mode: exclusive}}
      arcs:
        - step: {1}
          when: "{{{{ event.name == 'call.done' and s{0}.n > {0} }}}}"
"""
    each = short if lines == 8 else long
    names = [*(f"s{number}" for number in range(1, 1000)), "end"]
    return f"{HEAD}workflow:\n" + "".join(
        each.format(number, name) for number, name in enumerate(names)
    )
