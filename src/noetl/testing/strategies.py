"""Hypothesis strategies for events, drafts and whole histories.

Two vocabularies: `ANYTHING` asks what the wire can carry, `FEW_NAMES` makes events meet, so that
a history has takeovers, duplicates and late reports in it.
"""

import types
import typing
from collections.abc import Sequence
from datetime import UTC
from typing import Any, Literal, NamedTuple

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from noetl.domain.events import EVENT_CLASSES, BusinessObjectChanged, Event
from noetl.domain.events.envelope import Draft
from noetl.domain.payload import PayloadReference
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant, from_datetime, from_millis
from noetl.testing.given import Placed
from noetl.testing.histories import (
    START_MILLIS,
    History,
    begin,
    command_cycle,
    execution_ids,
    failed_and_retried,
    finish,
    loop_of_frames,
)

EXECUTION: ExecutionId = execution_ids(1)[0]
"""Every generated history is about this execution."""

STEPS = (StepName("load"), StepName("send"))
RETRIED_STEP = StepName("book")

_INT64 = st.integers(-(2**63), 2**63 - 1)


class Vocabulary(NamedTuple):
    """What events are filled with."""

    words: SearchStrategy[str]
    numbers: SearchStrategy[int]
    instants: SearchStrategy[Instant]
    objects: SearchStrategy[dict[str, Any]]


def texts(min_size: int = 0) -> SearchStrategy[str]:
    """Any Unicode that UTF-8 can carry."""
    return st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=12)


def names() -> SearchStrategy[str]:
    """Text that may name something: not empty, and no NUL, which some stores cannot hold."""
    return st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


def plain_values(leaves_max: int = 10) -> SearchStrategy[Any]:
    """Anything that JSON carries and gives back unchanged."""
    finite = st.floats(allow_nan=False, allow_infinity=False)
    scalars = st.none() | st.booleans() | _INT64 | finite | texts()
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(), inner, max_size=4),
        max_leaves=leaves_max,
    )


def plain_objects() -> SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts(), plain_values(), max_size=3)


def instants() -> SearchStrategy[Instant]:
    return st.datetimes(timezones=st.just(UTC)).map(from_datetime)


ANYTHING = Vocabulary(names(), _INT64, instants(), plain_objects())
FEW_NAMES = Vocabulary(
    words=st.sampled_from(["a", "b/1"]),
    numbers=st.integers(0, 3),
    instants=st.sampled_from([from_millis(START_MILLIS), from_millis(START_MILLIS + 120_000)]),
    objects=st.sampled_from(
        [
            {},
            {"x": 1},
            {"x": None, "y": [2.5, {"é": True}]},
            {"x.y": 2, "first": 0, "rows": 2},  # a dotted name, and the window of a frame
            {"first": 2, "rows": 1},
        ]
    ),
)


def events(
    vocabulary: Vocabulary = FEW_NAMES, classes: Sequence[type[Event]] = EVENT_CLASSES
) -> SearchStrategy[Event]:
    """An event of any class of the catalogue, optional fields sometimes left out."""
    return st.one_of([_structs(cls, vocabulary) for cls in classes])


def placed_events(
    vocabulary: Vocabulary = FEW_NAMES, classes: Sequence[type[Event]] = EVENT_CLASSES
) -> SearchStrategy[Placed]:
    """An event and an envelope that names everything it could be about."""
    words = vocabulary.words
    envelopes = st.fixed_dictionaries(
        {"stage_id": words, "frame_id": words, "command_id": words},
        optional={
            "causation_id": words,
            "meta": vocabulary.objects,
            "parent_event_id": words,
            "payload_ref": _structs(PayloadReference, vocabulary),
        },
    )
    return st.builds(_placed, events(vocabulary, classes), envelopes, words)


def histories(
    vocabulary: Vocabulary = FEW_NAMES,
    classes: Sequence[type[Event]] = EVENT_CLASSES,
    *,
    events_min: int = 0,
    events_max: int = 40,
) -> SearchStrategy[list[Draft]]:
    """Events in any order whatever: more than a coordinator would ever write."""
    happening = placed_events(vocabulary, classes)
    happenings = st.lists(happening, min_size=events_min, max_size=events_max)
    return happenings.map(as_drafts)


@st.composite
def runs(draw: st.DrawFn) -> list[Draft]:
    """An execution as a coordinator writes it: steps, loops over frames, an end."""
    history = History(EXECUTION)
    drafts = list(begin(history))
    for step in STEPS:
        for visit in range(1, draw(st.integers(1, 3))):
            drafts += command_cycle(history, step, visit, draw(FEW_NAMES.objects))
    frames = draw(st.integers(0, 3))
    if frames:
        drafts += loop_of_frames(history, STEPS[0], frames, rows_per_frame=draw(st.integers(1, 9)))
    if draw(st.booleans()):
        drafts += failed_and_retried(history, RETRIED_STEP)
    if draw(st.booleans()):
        drafts += finish(history, STEPS[-1])
    return drafts


@st.composite
def jumbled_runs(draw: st.DrawFn) -> list[Draft]:
    """The events of a run in another order, some of them often and some not at all."""
    happened = [_happening(draft) for draft in draw(runs())]
    numbers = st.sampled_from(range(len(happened)))
    return as_drafts([happened[number] for number in draw(st.lists(numbers, max_size=60))])


def as_drafts(happenings: Sequence[Placed], *, node: int = 2) -> list[Draft]:
    """Ids and times in the order given."""
    history = History(EXECUTION, node=node)
    return [history.draft(event, **envelope) for event, envelope in happenings]


def _happening(draft: Draft) -> Placed:
    fields = ("event_type", "stage_id", "frame_id", "command_id", "payload_ref", "meta")
    return Placed(draft.event, {field: getattr(draft, field) for field in fields})


def _placed(event: Event, envelope: dict[str, Any], own_name: str) -> Placed:
    if isinstance(event, BusinessObjectChanged):  # the only ones that may be called anything
        return Placed(event, {**envelope, "event_type": own_name})
    return Placed(event, envelope)


def _structs(cls: type[Any], vocabulary: Vocabulary) -> SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    values = {name: _values(hints[name], vocabulary) for name in fields}
    required = {name: values[name] for name, field in fields.items() if field.required}
    optional = {name: values[name] for name in fields if name not in required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: cls(**given))


def _values(hint: Any, vocabulary: Vocabulary) -> SearchStrategy[Any]:
    """A strategy for the type of a field. A type it does not know is an error, never a gap."""
    simple: dict[Any, SearchStrategy[Any]] = {
        Instant: vocabulary.instants,
        str: vocabulary.words,
        int: vocabulary.numbers,
        bool: st.booleans(),
        type(None): st.none(),
        dict[str, Any]: vocabulary.objects,
        dict[str, str]: st.dictionaries(vocabulary.words, vocabulary.words, max_size=2),
        list[Any]: st.lists(vocabulary.objects, max_size=2),
    }
    if hint in simple:
        return simple[hint]
    if isinstance(hint, typing.NewType):
        return _values(hint.__supertype__, vocabulary)
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Union | types.UnionType:
            return st.one_of([_values(each, vocabulary) for each in arguments])
        case kind if kind is Literal:
            return st.sampled_from(arguments)
        case kind if kind is tuple:
            return st.lists(_values(arguments[0], vocabulary), max_size=3).map(tuple)
        case _:
            return _structs(hint, vocabulary)
