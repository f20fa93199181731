"""When a `when:` holds, and what becomes of one that raises."""

from typing import Any

import pytest

from noetl.templates.errors import TemplateFailed, TemplateInvalid
from noetl.templates.reference import Reference
from noetl.templates.render import Judgement, Needs, Verdict, judge, truth


@pytest.mark.parametrize(
    "value",
    [True, 1, -1, 0.5, "true", "True", " yes ", "1", "x", "no", "0.0", [0], {"a": None}],
)
def test_what_either_engine_calls_true_is_true(value: Any) -> None:
    assert truth(value)


@pytest.mark.parametrize(
    "value",
    [False, 0, 0.0, None, "", "  ", "false", "FALSE", "0", "none", "None", "null", [], {}],
)
def test_nothing_zero_empty_and_their_words_are_false(value: Any) -> None:
    assert not truth(value)


@pytest.mark.parametrize(
    ("when", "verdict"),
    [
        (True, Verdict.HOLDS),
        (False, Verdict.FAILS),
        (None, Verdict.HOLDS),
        ("{{ count > 0 }}", Verdict.HOLDS),
        ("{{ count > 5 }}", Verdict.FAILS),
        ("{{ output.error.retryable }}", Verdict.FAILS),
        ("{% if count %}true{% endif %}", Verdict.HOLDS),
        ("{% if not count %}true{% endif %}", Verdict.FAILS),
    ],
)
def test_a_guard_holds_or_fails(when: Any, verdict: Verdict) -> None:
    assert judge(when, {"count": 3, "output": {}}) == Judgement(verdict)


@pytest.mark.parametrize(
    ("when", "error"),
    [
        ("{{ missing > 1 }}", TemplateFailed),
        ("{{ 1 / 0 }}", TemplateFailed),
        ("{{ ( }}", TemplateInvalid),
    ],
)
def test_a_guard_that_raises_is_neither(when: str, error: type[Exception]) -> None:
    judgement = judge(when, {})

    assert isinstance(judgement, Judgement)
    assert judgement.verdict is Verdict.RAISED
    assert type(judgement.error) is error


def test_a_guard_may_need_a_payload() -> None:
    bindings = {"fetch": Reference("noetl://x")}

    assert isinstance(judge("{{ fetch.rows[3].ok }}", bindings), Needs)
    assert isinstance(judge("{{ fetch }}", bindings), Needs)
