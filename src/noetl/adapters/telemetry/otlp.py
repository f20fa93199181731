"""Telemetry by OpenTelemetry: spans are gathered in a thread and posted to a collector by OTLP."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import context as open_context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from noetl.kernel.instant import Instant, to_datetime
from noetl.ports.clock import Clock
from noetl.ports.telemetry import (
    Attribute,
    Attributes,
    OpenSpan,
    SpanPlace,
    parent_in,
    span_of,
    trace_of,
)

TRACES_PATH = "/v1/traces"
EXPORT_SECONDS_MAX = 5.0
"""How long a collector may take; one that is away must not keep a command from ending."""

_HEXADECIMAL = 16
_MICROSECOND_NANOS = 1_000
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class OtlpTelemetry:
    """`new_id` gives hexadecimal digits, others each time. Times are those of the clock."""

    def __init__(
        self, endpoint: str, service: dict[str, str], clock: Clock, new_id: Callable[[], str]
    ) -> None:
        address = endpoint.rstrip("/")
        if not address.endswith(TRACES_PATH):
            address += TRACES_PATH
        self._clock = clock
        self._new_id = new_id
        self._resource = Resource(
            {f"service.{name}": value for name, value in {"name": "noetl", **service}.items()}
        )
        self._scope = InstrumentationScope("noetl")
        exporter = OTLPSpanExporter(endpoint=address, timeout=EXPORT_SECONDS_MAX)
        self._sending = BatchSpanProcessor(exporter)

    @contextmanager
    def span(self, place: SpanPlace, attributes: Attributes) -> Iterator[OpenSpan]:
        parent = _parent(place)
        context = self._context(place, parent)
        opened = _Opened(attributes)
        began = self._clock.now()
        token = open_context.attach(set_span_in_context(NonRecordingSpan(context)))
        try:
            yield opened
        except BaseException as error:
            opened.failed(str(getattr(error, "code", type(error).__name__)))
            raise
        finally:
            open_context.detach(token)
            self._end(_Span(place, context, parent, opened), began, self._clock.now())

    def past(
        self,
        place: SpanPlace,
        began: Instant,
        ended: Instant,
        attributes: Attributes,
        failure: str | None = None,
    ) -> None:
        parent = _parent(place)
        opened = _Opened(attributes)
        if failure is not None:
            opened.failed(failure)
        self._end(_Span(place, self._context(place, parent), parent, opened), began, ended)

    async def close(self) -> None:
        await asyncio.to_thread(self._sending.shutdown)

    def _context(self, place: SpanPlace, parent: SpanContext | None) -> SpanContext:
        trace = _number(trace_of(place.execution_id)) if parent is None else parent.trace_id
        if place.key is None:
            span = _number(self._new_id()[:_HEXADECIMAL])
        else:
            span = _number(span_of(place.execution_id, place.key))
        return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)

    def _end(self, span: "_Span", began: Instant, ended: Instant) -> None:
        failure = span.opened.failure
        kinds = {"noetl.kind": span.place.kind, "noetl.execution_id": span.place.execution_id}
        self._sending.on_end(
            ReadableSpan(
                name=span.place.name,
                context=span.context,
                parent=span.parent,
                resource=self._resource,
                attributes={**kinds, **span.opened.attributes},
                status=Status(StatusCode.OK if failure is None else StatusCode.ERROR, failure),
                start_time=_nanos(began),
                end_time=max(_nanos(began), _nanos(ended)),
                instrumentation_scope=self._scope,
            )
        )


class _Opened:
    def __init__(self, attributes: Attributes) -> None:
        self.failure: str | None = None
        self.attributes: dict[str, Attribute] = {}
        self.note(attributes)

    def note(self, attributes: Attributes) -> None:
        self.attributes |= {name: value for name, value in attributes.items() if value is not None}

    def failed(self, kind: str) -> None:
        """The first word counts: it is the nearest to the cause."""
        self.failure = self.failure or kind


class _Span:
    def __init__(
        self, place: SpanPlace, context: SpanContext, parent: SpanContext | None, opened: _Opened
    ) -> None:
        self.place = place
        self.context = context
        self.parent = parent
        self.opened = opened


def _parent(place: SpanPlace) -> SpanContext | None:
    """What came with the work, else by name, else what is open here; of an execution none."""
    carried = parent_in(place.carried)
    if carried is None and place.below is not None:
        carried = trace_of(place.execution_id), span_of(place.execution_id, place.below)
    if carried is not None:
        trace, span = (_number(part) for part in carried)
        return SpanContext(trace, span, is_remote=True, trace_flags=_SAMPLED)
    if place.key is not None:
        return None
    here = get_current_span().get_span_context()
    return here if here.is_valid else None


def _number(digits: str) -> int:
    return int(digits, _HEXADECIMAL)


def _nanos(instant: Instant) -> int:
    """Exact: a float of seconds would lose the microseconds."""
    moment = to_datetime(instant)
    whole = int(moment.replace(microsecond=0).timestamp())
    return (whole * 1_000_000 + moment.microsecond) * _MICROSECOND_NANOS
