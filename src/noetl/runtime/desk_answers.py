"""Answers to reports, so that one that is sent again gets the answer to the first.

A report is sent again when its answer is late or was lost on its way, and the work in it with it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from noetl.domain.work import Reported

REMEMBERED_MAX = 1_000

ReportKey = tuple[str, int]


class ReportAnswers:
    def __init__(self) -> None:
        self._answers: OrderedDict[ReportKey, asyncio.Future[Reported | None]] = OrderedDict()

    async def known(self, key: ReportKey) -> Reported | None:
        """What the first was told, as soon as it is. None: it was not recorded, or never sent."""
        while (answer := self._answers.get(key)) is not None:
            known = await asyncio.shield(answer)
            if known is not None:
                return known
        return None

    async def made(self, key: ReportKey, make: Callable[[], Awaitable[Reported]]) -> Reported:
        answer: asyncio.Future[Reported | None] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        if len(self._answers) > REMEMBERED_MAX:
            self._answers.popitem(last=False)
        made: Reported | None = None
        try:
            made = await make()
            return made
        finally:
            if made is None:
                self._answers.pop(key, None)
            answer.set_result(made)
