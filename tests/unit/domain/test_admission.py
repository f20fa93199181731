"""Which appends continue a stream, and what a log answers to those that do not."""

import msgspec
import pytest

from noetl.domain.admission import broken_link, keys_of, recorded_before, refusal
from noetl.domain.events import StepEntered
from noetl.domain.log import APPEND_EVENTS_MAX, EMPTY_STREAM, Append, Appended, StreamHead
from noetl.kernel.errors import ChainBroken, KeyReused, ScopeMismatch, VersionConflict
from noetl.kernel.ids import EventId, ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import seal

FIRST, SECOND = execution_ids(2)
OTHER_SCOPE = Scope("acme", "research")
HEAD = StreamHead(4, EventId("99"))


def append(count: int = 3, head: StreamHead = HEAD, keys: tuple[str | None, ...] = ()) -> Append:
    history = History(FIRST)
    drafts = [
        history.draft(StepEntered(step=StepName("load")), idempotency_key=key)
        for key in keys or (None,) * count
    ]
    return Append(DEFAULT_SCOPE, FIRST, head.version, seal(drafts, head, source_of(FIRST)))


def test_an_append_that_continues_its_stream_is_admitted() -> None:
    assert broken_link(append()) is None
    assert refusal(append(), HEAD, DEFAULT_SCOPE) is None


def test_a_first_append_needs_no_stream() -> None:
    first = append(head=EMPTY_STREAM)
    assert broken_link(first) is None
    assert refusal(first, EMPTY_STREAM, None) is None


@pytest.mark.parametrize(("count", "fits"), [(1, True), (500, True), (501, False)])
def test_an_append_has_at_most_five_hundred_events(count: int, fits: bool) -> None:
    assert APPEND_EVENTS_MAX == 500
    error = broken_link(append(count))
    assert (error is None) is fits
    assert fits or isinstance(error, ChainBroken)


def test_an_append_of_nothing_is_refused() -> None:
    empty = msgspec.structs.replace(append(), events=())
    assert isinstance(broken_link(empty), ChainBroken)


def test_events_of_another_stream_are_refused() -> None:
    stranger = msgspec.structs.replace(append(), execution_id=SECOND)
    error = broken_link(stranger)
    assert isinstance(error, ChainBroken)
    assert "is of another stream" in str(error)


@pytest.mark.parametrize("scope", [OTHER_SCOPE, Scope("default", "x"), Scope("x", "default")])
def test_events_of_another_scope_are_refused(scope: Scope) -> None:
    assert isinstance(broken_link(msgspec.structs.replace(append(), scope=scope)), ScopeMismatch)


def test_a_gap_a_doubling_and_a_wrong_order_are_refused() -> None:
    whole = append()
    first, second, third = whole.events
    for events in ((first, third), (first, first), (second, first), (first, second, second)):
        error = broken_link(msgspec.structs.replace(whole, events=events))
        assert isinstance(error, ChainBroken)


def test_versions_that_do_not_follow_the_expected_one_are_refused() -> None:
    late = msgspec.structs.replace(append(), expected_version=HEAD.version + 1)
    assert isinstance(broken_link(late), ChainBroken)


def test_an_event_that_names_another_one_before_it_is_refused() -> None:
    whole = append()
    first, second, third = whole.events
    forked = msgspec.structs.replace(
        second, envelope=msgspec.structs.replace(second.envelope, prev_event_id=EventId("7"))
    )
    error = broken_link(msgspec.structs.replace(whole, events=(first, forked, third)))
    assert isinstance(error, ChainBroken)


def test_a_stale_writer_is_told_both_versions() -> None:
    error = refusal(append(), StreamHead(6, EventId("123")), DEFAULT_SCOPE)
    assert isinstance(error, VersionConflict)
    assert (error.expected, error.actual) == (4, 6)


def test_the_right_version_after_the_wrong_event_is_a_fork() -> None:
    error = refusal(append(), StreamHead(4, EventId("98")), DEFAULT_SCOPE)
    assert isinstance(error, ChainBroken)
    assert "follows 99, not 98" in str(error)


def test_a_stream_of_another_scope_is_refused_whatever_the_version() -> None:
    for head in (HEAD, StreamHead(6, EventId("123")), EMPTY_STREAM):
        assert isinstance(refusal(append(), head, OTHER_SCOPE), ScopeMismatch)


def test_keys_are_those_of_the_events_that_have_one() -> None:
    assert keys_of(append(keys=("a", None, "b"))) == ["a", "b"]
    assert keys_of(append()) == []


def test_an_append_without_keys_was_never_recorded_before() -> None:
    assert recorded_before(append(), {}) is None
    assert recorded_before(append(), {"a": (1, 1)}) is None
    assert recorded_before(append(keys=("a", "b")), {}) is None


def test_an_append_whose_keys_are_all_recorded_came_twice() -> None:
    places = {"a": (5, 105), "b": (7, 107)}
    outcome = recorded_before(append(keys=("a", None, "b")), places)
    assert outcome == Appended(7, 105, 107, duplicate=True)


def test_an_append_of_which_some_keys_are_recorded_took_the_key_of_another() -> None:
    outcome = recorded_before(append(keys=("new", "a", "b")), {"b": (7, 107), "a": (5, 105)})
    assert isinstance(outcome, KeyReused)
    assert outcome.key == "a"


def test_streams_are_named_after_their_execution() -> None:
    assert Append(DEFAULT_SCOPE, ExecutionId("7"), 0, ()).stream == "execution/7"
