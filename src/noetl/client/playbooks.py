"""Playbooks of a server by digest: fetched once, proved, and kept ready."""

import asyncio
from collections import OrderedDict

from noetl.client.connection import Connection
from noetl.domain.playbook.model import Playbook
from noetl.dsl.check import check
from noetl.kernel.errors import PayloadCorrupt, PlaybookInvalid
from noetl.kernel.scope import Scope

PARSED_MAX = 256


class HttpPlaybooks:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parsed: OrderedDict[tuple[Scope, str], Playbook] = OrderedDict()

    async def load(self, scope: Scope, digest: str) -> Playbook:
        """The playbook that executions of this digest follow."""
        key = (scope, digest)
        if key in self._parsed:
            self._parsed.move_to_end(key)
            return self._parsed[key]
        path = f"/api/internal/playbooks/{digest}"
        text = await self._connection.data("GET", path)
        checked = await asyncio.to_thread(check, text)
        if checked.digest != digest:
            uri = self._connection.server + path
            raise PayloadCorrupt(uri, expected=digest, actual=checked.digest)
        if checked.playbook is None:
            # The server has run it, so it is of another version than we are.
            raise PlaybookInvalid(tuple(problem.message for problem in checked.problems))
        self._parsed[key] = checked.playbook
        if len(self._parsed) > PARSED_MAX:
            self._parsed.popitem(last=False)
        return checked.playbook
