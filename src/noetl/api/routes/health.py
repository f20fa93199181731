"""Whether the server is there, and its numbers."""

import msgspec
from starlette.responses import Response

from noetl.api.metrics import MEDIA_TYPE
from noetl.api.route import Asked, Nothing, get


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ok"
    version: str = ""


async def health(asked: Asked[Nothing, Nothing]) -> Health:
    return Health(version=asked.services.version)


async def metrics(asked: Asked[Nothing, Nothing]) -> Response:
    return Response(await asked.services.metrics.text(), media_type=MEDIA_TYPE)


ROUTES = (
    get("/health", "Whether the server is there", health, gives=Health),
    get("/api/health", "Whether the server is there", health, gives=Health),
    get("/metrics", "Numbers for Prometheus", metrics, media_type="text/plain"),
)
