"""Pages: they hold no data, run nothing but their own script, and ask only for what there is."""

import hashlib
import re
from base64 import b64encode
from importlib.resources import files

import pytest
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute

from noetl.api.app import ROUTES
from noetl.bootstrap.settings import Settings
from tests.api.running import Api, running_api

SCRIPTS = {
    name: files("noetl.api").joinpath("pages", name).read_text("utf-8")
    for name in ("shared.js", "console.js", "docs.js")
}


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_allows_no_script_but_its_own(api: Api, path: str) -> None:
    async with api.session.get(path) as answer:
        page, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


async def test_pages_are_open_and_their_data_is_not(settings: Settings) -> None:
    async with running_api(Settings(home=settings.home, api_key="a-long-secret-key")) as api:
        async with api.session.get("/") as answer:
            assert answer.status == 200
        assert (await api.call("GET", "/api/executions", headers={})).status == 401


def test_whatever_pages_ask_for_has_a_route() -> None:
    told = "".join(SCRIPTS.values())
    asked = re.findall(r"ask\([\"`](/[^\"`?]*)", told)
    assert len(asked) > 5
    for path in asked:
        filled = re.sub(r"\$\{[^}]*\}", "1", path)
        scopes = [{"type": "http", "path": filled, "method": way} for way in ("GET", "POST")]
        found = [StarletteRoute(r.path, lambda _: None, methods=[r.method]) for r in ROUTES]
        whole = [each.matches(scope)[0] is Match.FULL for each in found for scope in scopes]
        # An action's name comes from a button: any of them has the same shape.
        assert any(whole) or path.endswith("/${name}"), path


def test_what_playbooks_say_is_never_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write", str(SCRIPTS))
