"""The HTTP server that golden playbooks talk to: pages, errors by script, an echo, tokens."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from noetl.servers.process import LOOPBACK

TOKEN = "golden-issued-token-5f0c9a"
ITEMS_TOTAL = 7
SCRIPT = 'result = {"from": "script", "n": n + 1}\n'
ROWS = [{"id": number, "name": f"row {number}", "deep": {"x": number * 10}} for number in range(5)]

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GoldenApi:
    """Counts are kept by the key that a playbook brings, so that runs do not see each other."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: Counter[str] = Counter()  # by method and path
        self.orders: Counter[str] = Counter()  # by Idempotency-Key
        self._asked: Counter[str] = Counter()

    def routes(self) -> list[web.RouteDef]:
        answers: dict[str, Answer] = {
            "/items": self._items,
            "/flaky/{key}": self._flaky,
            "/status/{code}": self._status,
            "/echo": self._echo,
            "/token": self._token,
            "/me": self._me,
            "/orders": self._orders,
            "/slow": self._slow,
            "/redirect": self._redirect,
            "/text": self._text,
            "/no-json": self._no_json,
            "/empty": self._empty,
            "/rows": self._rows,
            "/script.py": self._script,
            "/cut": self._cut,
        }
        return [web.route("*", path, self._counted(answer)) for path, answer in answers.items()]

    def _counted(self, answer: Answer) -> Answer:
        async def count(request: web.Request) -> web.StreamResponse:
            self.requests[f"{request.method} {request.path}"] += 1
            return await answer(request)

        return count

    async def _items(self, request: web.Request) -> web.StreamResponse:
        size = int(request.query.get("size", "3"))
        page = int(request.query.get("page", "1"))
        first = int(request.query.get("offset", str((page - 1) * size)))
        data = [{"id": number} for number in range(first, min(first + size, ITEMS_TOTAL))]
        has_more = first + size < ITEMS_TOTAL
        paging = {"page": page, "hasMore": has_more, "next": first + size if has_more else None}
        return web.json_response({"data": data, "paging": paging})

    async def _flaky(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        self._asked[key] += 1
        asked = self._asked[key]
        if asked <= int(request.query.get("failures", "2")):
            status = int(request.query.get("status", "429"))
            return web.json_response({"error": "not yet", "asked": asked}, status=status)
        return web.json_response({"asked": asked})

    async def _status(self, request: web.Request) -> web.StreamResponse:
        status = int(request.match_info["code"])
        return web.json_response({"error": f"status {status}"}, status=status)

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        return web.json_response(
            {
                "method": request.method,
                "query": sorted([name, text] for name, text in request.query.items()),
                "content_type": request.headers.get("Content-Type"),
                "x_trace": request.headers.get("X-Trace"),
                "body": body,
            }
        )

    async def _token(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if form.get("grant_type") != "client_credentials":
            return web.json_response({"error": "unsupported_grant_type"}, status=400)
        issued = {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}
        return web.json_response(issued)

    async def _me(self, request: web.Request) -> web.StreamResponse:
        """Says who asks, and sends the credential back, as careless servers do."""
        given = request.headers.get("Authorization") or request.headers.get("X-API-Key")
        if given is None:
            return web.json_response({"error": "who are you?"}, status=401)
        known = {"scheme": given.partition(" ")[0], "length": len(given), "given": given}
        return web.json_response(known)

    async def _orders(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Idempotency-Key", "")
        self.orders[key] += 1
        return web.json_response({"key": key, "times": self.orders[key]}, status=201)

    async def _slow(self, request: web.Request) -> web.StreamResponse:
        del request
        await asyncio.Event().wait()  # until the client goes away
        raise AssertionError("nobody sets the event")

    async def _redirect(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(status=302, headers={"Location": "/text"})

    async def _text(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text="plain words")

    async def _no_json(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text="<html>", content_type="application/json")

    async def _empty(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(status=204)

    async def _rows(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.json_response({"result": {"rows": ROWS}})

    async def _script(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text=SCRIPT)

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@asynccontextmanager
async def serving() -> AsyncIterator[GoldenApi]:
    api = GoldenApi()
    app = web.Application()
    app.add_routes(api.routes())
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    host, port = runner.addresses[0][:2]
    api.url = f"http://{host}:{port}"
    try:
        yield api
    finally:
        await runner.cleanup()
