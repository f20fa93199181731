"""Pages for people: executions as they run, and the API as it describes itself."""

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from starlette.responses import Response

from noetl.api.route import Asked, Nothing, get

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>NoETL: {title}</title>
<style>{style}</style>
<header><b>NoETL</b><a href="/">executions</a><a href="/docs">API</a><span>{version}</span></header>
<div class="trouble" role="alert"></div>
<main><p class="note">…</p></main>
<script>{script}</script>
</html>
"""


class Page(NamedTuple):
    text: str
    policy: str


@cache
def page(name: str, title: str, version: str) -> Page:
    """Nothing but the page's own script may run, and it may ask nobody but this server."""
    folder = files("noetl.api").joinpath("pages")
    style, shared, own = (
        folder.joinpath(part).read_text("utf-8") for part in ("page.css", "shared.js", f"{name}.js")
    )
    script = f"\n{shared}\n{own}"
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
        " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )
    return Page(_PAGE.format(title=title, style=style, version=version, script=script), policy)


def _answer(made: Page) -> Response:
    headers = {
        "Content-Security-Policy": made.policy,
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(made.text, media_type="text/html", headers=headers)


async def executions(asked: Asked[Nothing, Nothing]) -> Response:
    return _answer(page("console", "executions", asked.services.version))


async def docs(asked: Asked[Nothing, Nothing]) -> Response:
    return _answer(page("docs", "API", asked.services.version))


ROUTES = (
    get("/", "Executions as they run, for people", executions, media_type="text/html"),
    get("/docs", "This API, for people", docs, media_type="text/html"),
)
