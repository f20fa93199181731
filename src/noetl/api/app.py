"""The application: every route, what stands before it, and what becomes of errors."""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from noetl.api import problems
from noetl.api.guard import Guard
from noetl.api.openapi import document
from noetl.api.route import AnyRoute, Asked, Nothing, get, read
from noetl.api.routes import (
    catalog,
    cells,
    commands,
    control,
    credentials,
    execute,
    executions,
    facts,
    frames,
    health,
    internal,
    journals,
    objects,
    pages,
    replay,
    result_tier,
    results,
    streams,
    trace,
    work,
    workers,
)
from noetl.api.services import ApiServices
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.runtime.log_lines import about

_LOG = logging.getLogger(__name__)


async def _described(asked: Asked[Nothing, Nothing]) -> dict[str, Any]:
    return document(ROUTES, asked.services.version)


ROUTES: tuple[AnyRoute, ...] = (
    get("/openapi.json", "This document", _described, gives=dict[str, Any]),
    *pages.ROUTES,
    *health.ROUTES,
    *catalog.ROUTES,
    *credentials.ROUTES,
    *execute.ROUTES,
    *executions.ROUTES,
    *trace.ROUTES,
    *control.ROUTES,
    *streams.ROUTES,
    *commands.ROUTES,
    *facts.ROUTES,
    *replay.ROUTES,
    *results.ROUTES,
    *workers.ROUTES,
    *work.ROUTES,
    *frames.ROUTES,
    *internal.ROUTES,
    *result_tier.ROUTES,
    *cells.ROUTES,
    *journals.ROUTES,
    *objects.ROUTES,
)


def create_app(services: ApiServices) -> Starlette:
    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        services.metrics.answered("other", request.method, error.status_code, 0.0)
        return problems.of_refusal(error, request.scope["path"])

    async def unforeseen(request: Request, _error: Exception) -> Response:
        return problems.unforeseen(request.scope["path"])

    app = Starlette(
        routes=[
            StarletteRoute(route.path, _served(route, services), methods=[route.method])
            for route in ROUTES
        ],
        middleware=[
            Middleware(Guard, keys=services.keys, metrics=services.metrics, now=services.clock.now)
        ],
        exception_handlers={HTTPException: refused, Exception: unforeseen},
    )
    app.router.redirect_slashes = False  # a path is right or it is not there
    return app


def _served(route: AnyRoute, services: ApiServices) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        began = services.clock.monotonic()
        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)
        try:
            response = await _answer(route, services, request)
            status = response.status_code
            return response
        finally:
            seconds = services.clock.monotonic() - began
            services.metrics.answered(route.public_path, route.method, status, seconds)

    return serve


async def _answer(route: AnyRoute, services: ApiServices, request: Request) -> Response:
    instance: str = request.scope["path"]
    try:
        answer = await route.endpoint(await read(request, route, services))
    except InvariantBroken:
        raise  # our own bug: the server's log must say where
    except NoETLError as error:
        level = logging.WARNING if problems.is_server_side(error) else logging.DEBUG
        names = about(route=route.public_path, method=route.method)
        _LOG.log(level, "request not answered: %s", error.code, extra=names)
        return problems.of_error(error, instance)
    except HTTPException as refusal:
        return problems.of_refusal(refusal, instance)
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody is there to read it
    if isinstance(answer, Response):
        return answer
    return Response(msgspec.json.encode(answer), media_type=route.media_type)
