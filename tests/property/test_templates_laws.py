"""Laws: references never guess, values survive, secrets do not."""

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noetl.templates.errors import TemplateError
from noetl.templates.extract import cut_as_plain, cut_from_plain, extract
from noetl.templates.reference import Reference
from noetl.templates.render import Needs, Rendered, render, truth
from noetl.templates.secret import MASK, Secret, scrub
from noetl.testing.strategies import plain_values

keys = st.sampled_from(["rows", "data", "a", "status", "0", "long"])
long_texts = st.integers(0, 400).map("x".__mul__)
scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["ok", "", "7"]) | long_texts
)
payloads = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(keys, inner, max_size=6)
        | st.builds(lambda item, times: [item] * times, inner, st.sampled_from([2, 70]))
    ),
    max_leaves=6,
)
steps = st.lists(
    st.sampled_from(
        [".rows", ".data", ".a", ".status", "['0']", "[0]", "[-1]", "[3]", "[60]", ".no"]
    ),
    max_size=4,
).map("".join)
ends = st.sampled_from(
    [
        *(
            "",
            " | length",
            " | first",
            " | last",
            " | default(3)",
            " is defined",
            " | tojson",
            " == []",
        ),
        *(
            " is mapping",
            " is string",
            " is sequence",
            " | keys",
            " == none",
            " ~ ''",
            "[0:2]",
            "[2:]",
        ),
        *(
            " | int",
            " | list",
            " | join(',')",
            " in ['ok']",
            " | upper",
            " + [1]",
            " and 1",
            "[::-1]",
        ),
        *(
            ".items()",
            ".get('a', 5)",
            " | map('string') | list",
            " | string",
            " | b64encode",
            " | sum",
        ),
        *(
            " < 'x'",
            " | sort",
            " != 'ok'",
            " | select | list",
            " | max",
            " * 2",
            " | tojson | length",
        ),
    ]
)


@settings(max_examples=300, deadline=5_000)
@given(payloads, steps, ends, st.sampled_from([64, 256, 1_024]))
def test_a_reference_answers_as_the_whole_value_or_needs_it(
    payload: Any, path: str, end: str, bytes_max: int
) -> None:
    block, cut = extract(payload, bytes_max)
    assume(cut is not None)
    assert cut is not None
    source = f"{{{{ (p{path}){end} }}}}"

    answered = outcome(source, Reference("noetl://p", block, cut))

    if not isinstance(answered, Needs):
        whole = outcome(source, payload)
        assert same(answered, whole, payload), (answered, whole)


def outcome(source: str, payload: Any) -> Any:
    try:
        return render(source, {"p": payload})
    except TemplateError:
        return "an error"


def same(answered: Any, whole: Any, payload: Any) -> bool:
    """A reference that was passed on stands for what is at its path."""
    if isinstance(answered, Rendered):
        return isinstance(whole, Rendered) and resolved(answered.value, payload) == whole.value
    return bool(answered == whole)


def resolved(value: Any, payload: Any) -> Any:
    if isinstance(value, Reference):
        for key in value.path:
            payload = payload[key]
        return payload
    if isinstance(value, list):
        return [resolved(item, payload) for item in value]
    if isinstance(value, dict):
        return {key: resolved(item, payload) for key, item in value.items()}
    return value


@given(payloads, st.sampled_from([64, 256, 1_024]))
def test_an_extract_is_short_and_a_cut_survives_json(payload: Any, bytes_max: int) -> None:
    block, cut = extract(payload, bytes_max)

    assert len(json.dumps(block, ensure_ascii=False).encode()) <= bytes_max
    assert cut is not None or block == payload
    if cut is not None:
        travelled = json.loads(json.dumps([block, cut_as_plain(cut)]))
        assert cut_from_plain(travelled[1], travelled[0]) == cut


@given(plain_values())
def test_a_value_survives_as_it_is_and_through_json(value: Any) -> None:
    assert render("{{ value }}", {"value": value}) == Rendered(value)
    assert render("{{ value | tojson | fromjson }}", {"value": value}) == Rendered(value)


@given(st.text(), st.text())
def test_text_without_templates_is_left_alone(left: str, right: str) -> None:
    assume("{{" not in left + right and "{%" not in left + right)

    assert render([left, {left: right}], {}) == Rendered([left, {left: right}])


@given(st.none() | st.booleans() | st.integers())
def test_truth_is_the_same_for_a_value_and_its_word(value: Any) -> None:
    assert truth(value) == truth(str(value))


@given(st.text(min_size=4))
def test_after_scrubbing_a_secret_is_gone(word: str) -> None:
    assume(word not in f"<{MASK}>{MASK}")

    shown = scrub([f"<{word}>{word}", word, {word: [{1: word}]}, json.dumps(word)], [Secret(word)])

    assert shown == [f"<{MASK}>{MASK}", MASK, {MASK: [{1: MASK}]}, f'"{MASK}"']
