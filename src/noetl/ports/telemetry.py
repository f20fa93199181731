"""Spans: what took how long, as part of which execution. Nothing is recorded unless asked for.

Ids are made of the execution's own names, so that a server, its workers and whoever starts after
a crash speak of the same trace without telling each other.
"""

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple, Protocol

from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant

SpanKind = Literal["execution", "step", "command", "frame", "tool", "append"]
Attribute = str | int | float | bool
Attributes = Mapping[str, Attribute | None]

_TRACE_DIGITS = 32
_SPAN_DIGITS = 16
_SAMPLED = "01"


SpanKey = tuple[str, ...]
"""A span by its names within the execution: whoever knows them knows its id."""

EXECUTION: SpanKey = ("execution",)


class SpanPlace(NamedTuple):
    """Where a span stands. Without a key it gets an id when it begins; with neither `below` nor
    `carried` it stands below the span that is open where it begins."""

    kind: SpanKind
    name: str
    execution_id: ExecutionId
    key: SpanKey | None = None
    below: SpanKey | None = None
    carried: str = ""  # a traceparent that came with the work: it counts more than `below`


class OpenSpan(Protocol):
    def note(self, attributes: Attributes) -> None: ...

    def failed(self, kind: str) -> None:
        """It ended badly. Only the kind is told: messages may quote data."""
        ...


class Telemetry(Protocol):
    def span(
        self, place: SpanPlace, attributes: Attributes
    ) -> AbstractContextManager[OpenSpan | None]:
        """Open until the block ends; an error that leaves the block is its failure."""
        ...

    def past(
        self,
        place: SpanPlace,
        began: Instant,
        ended: Instant,
        attributes: Attributes,
        failure: str | None = None,
    ) -> None:
        """A span that is over, told afterwards."""
        ...

    async def close(self) -> None:
        """What was told is sent, as far as somebody takes it."""
        ...


class NoTelemetry:
    """The default: nobody asks, nothing is kept."""

    def span(self, place: SpanPlace, attributes: Attributes) -> AbstractContextManager[None]:
        del place, attributes
        return nullcontext()

    def past(
        self,
        place: SpanPlace,
        began: Instant,
        ended: Instant,
        attributes: Attributes,
        failure: str | None = None,
    ) -> None:
        """Nobody asked."""

    async def close(self) -> None:
        """Nothing is open."""


NO_TELEMETRY: Telemetry = NoTelemetry()


def trace_of(execution: ExecutionId) -> str:
    """Every execution is one trace; spans of a child name its parent."""
    return _digits("trace", execution)[:_TRACE_DIGITS]


def span_of(execution: ExecutionId, key: SpanKey) -> str:
    return _digits("span", execution, *key)[:_SPAN_DIGITS]


def step_key(step: StepName, visit: int) -> SpanKey:
    return ("step", step, str(visit))


def traceparent(execution: ExecutionId, key: SpanKey) -> str:
    """As the W3C writes it, for whoever works below the span."""
    return f"00-{trace_of(execution)}-{span_of(execution, key)}-{_SAMPLED}"


def parent_in(carried: str) -> tuple[str, str] | None:
    """The trace and the span of a traceparent; None when it is none."""
    parts = carried.split("-")
    if tuple(len(part) for part in parts) != (2, _TRACE_DIGITS, _SPAN_DIGITS, 2):
        return None
    return parts[1], parts[2]


def _digits(*names: str) -> str:
    return hashlib.sha256("\n".join(("noetl", *names)).encode()).hexdigest()
