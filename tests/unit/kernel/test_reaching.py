"""Why nobody answered is said in words; what nobody foresaw, as it came."""

import socket

from noetl.kernel.errors.reaching import reason_away


class Wrapped(OSError):
    def __init__(self, os_error: OSError) -> None:
        super().__init__("Cannot connect to host x:1 ssl:default")
        self.os_error = os_error


def test_what_a_client_wraps_is_looked_into() -> None:
    refused = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)")
    assert reason_away(Wrapped(refused)) == reason_away(refused) == "nobody listens there"
    unknown = socket.gaierror(-2, "Name or service not known")
    assert reason_away(Wrapped(unknown)) == "the name of its host is not known"


def test_anything_else_is_told_as_it_is() -> None:
    assert reason_away(Wrapped(OSError("odd"))) == "Cannot connect to host x:1 ssl:default"
    assert reason_away(TimeoutError()) == "TimeoutError"
