"""The line to a server: said on the spot when it breaks, and again when it holds."""

import logging

_LOG = logging.getLogger(__name__)


class Line:
    """Only changes are told: a server that is away for an hour is worth two lines."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._is_up: bool | None = None  # None: nobody has asked yet

    def up(self) -> None:
        if self._is_up is not True:
            again = "" if self._is_up is None else " again"
            self._is_up = True
            _LOG.info("connected%s", again, extra={"about": {"server": self._server}})

    def down(self, reason: str) -> None:
        if self._is_up is not False:
            self._is_up = False
            _LOG.warning("%s; trying again", reason)
