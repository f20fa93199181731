"""Failures carry a kind of one vocabulary and whether a retry may help."""

import pytest

from noetl.tools.failures import failed


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "db_deadlock", "missing_reference"])
def test_a_passing_trouble_is_retryable(kind: str) -> None:
    assert failed(kind, "try again").failure.retryable


@pytest.mark.parametrize("kind", ["auth", "client_error", "schema", "db_constraint", "unknown"])
def test_what_stays_wrong_is_not_retryable(kind: str) -> None:
    assert not failed(kind, "correct it").failure.retryable


def test_a_tool_that_knows_better_says_whether_a_retry_helps() -> None:
    assert not failed("server_error", "it is not built", retryable=False).failure.retryable
    assert failed("unknown", "it may pass", retryable=True).failure.retryable


def test_a_failure_keeps_what_the_target_said() -> None:
    raised = failed(
        "unknown", "no", code="7", detail={"a": 1}, value={"b": 2}, http={"status": 500}
    )

    assert str(raised) == "no"
    assert raised.failure.code == "7"
    assert raised.failure.detail == {"a": 1}
    assert raised.value == {"b": 2}
    assert raised.http == {"status": 500}
    assert raised.pg is None


def test_a_word_outside_the_vocabulary_is_our_bug() -> None:
    with pytest.raises(AssertionError, match="mystery is not a kind"):
        failed("mystery", "what")
