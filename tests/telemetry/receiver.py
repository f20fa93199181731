"""A collector: takes OTLP over HTTP as collectors do, and keeps the spans it was sent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Received:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    is_error: bool
    message: str
    attributes: dict[str, Any]
    service: dict[str, Any]


@dataclass
class Collector:
    endpoint: str = ""
    spans: list[Received] = field(default_factory=list)

    def of(self, kind: str) -> list[Received]:
        return [span for span in self.spans if span.attributes["noetl.kind"] == kind]

    async def take(self, request: web.Request) -> web.Response:
        sent = ExportTraceServiceRequest()
        sent.ParseFromString(await request.read())
        for resource in sent.resource_spans:
            service = _plain(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += [_received(span, service) for span in scope.spans]
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")


def _received(span: Any, service: dict[str, Any]) -> Received:
    return Received(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        is_error=span.status.code == 2,
        message=span.status.message,
        attributes=_plain(span.attributes),
        service=service,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    collector.endpoint = f"http://{host}:{port}"
    try:
        yield collector
    finally:
        await runner.cleanup()
