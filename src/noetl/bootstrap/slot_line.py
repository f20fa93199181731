"""The line of a slot to its coordinator: since when nobody has answered."""

from noetl.client.line import Line
from noetl.ports.clock import Clock


class SlotLine(Line):
    def __init__(self, server: str, clock: Clock) -> None:
        super().__init__(server)
        self._clock = clock
        self._heard_at = clock.monotonic()

    def up(self) -> None:
        super().up()
        self._heard_at = self._clock.monotonic()

    async def until_silent(self, seconds: float) -> None:
        """Returns when nobody has answered for so long."""
        while (left := self._heard_at + seconds - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)
