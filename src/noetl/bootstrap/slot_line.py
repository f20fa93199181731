"""The line of a slot to its coordinator: since when nobody has answered, and when to give up."""

from noetl.client.line import Line
from noetl.ports.clock import Clock

SILENT_SECONDS_MIN = 60.0
SILENT_LEASES = 3


def silent_seconds_max(lease_seconds: float) -> float:
    """A coordinator that comes back within this time goes on with the slots that it had. After it,
    all that they held is somebody else's, and the cluster should have its processors again."""
    return max(SILENT_LEASES * lease_seconds, SILENT_SECONDS_MIN)


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
