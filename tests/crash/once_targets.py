"""Targets that remember who asked for what: the same wish under two keys is two effects.

No two answers are alike, so whoever runs a call again gets other bytes than before.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from aiohttp import web

from tests.crash.counters import COUNTING, HONOURING, Counters

REFUSED = "refused"
"""Wishes with this in their names are counted and then answered with an error."""


@dataclass
class Targets(Counters):
    wished: Counter[str] = field(default_factory=Counter)  # arrivals, whatever their keys
    keys: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by wish

    def effects(self, wish: str) -> int:
        """How often it was done: one target knows keys, the other does what it is told."""
        return len(self.keys[wish]) if wish.startswith(HONOURING) else self.wished[wish]

    def of_execution(self, execution: str) -> list[str]:
        return [wish for wish in list(self.wished) if wish.partition("/")[2].startswith(execution)]

    async def _answer(self, request: web.Request) -> web.Response:
        target, name = request.match_info["target"], request.match_info["name"]
        assert target in (HONOURING, COUNTING)
        wish = f"{target}/{name}"
        body = await request.json()
        self.keys[wish].add(request.headers["Idempotency-Key"])
        self.wished[wish] += 1
        if REFUSED in name:
            return web.json_response({"error": "not today"}, status=503)
        return web.json_response({"told": body, "arrival": self.wished.total()})
