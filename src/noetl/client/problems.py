"""Problem documents as the errors that they were on the other side."""

from collections.abc import Iterator
from http import HTTPStatus

import msgspec

from noetl.kernel.errors import (
    LogUnavailable,
    NoETLError,
    PlaybookInvalid,
    RequestInvalid,
    ServerFailed,
    SettingInvalid,
)


class ProblemTold(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    detail: str
    problems: tuple[str, ...] = ()
    facts: dict[str, str] = {}


def error_of(server: str, status: int, data: bytes) -> NoETLError:
    """The error to raise for an answer that is none."""
    try:
        told = msgspec.json.decode(data, type=ProblemTold)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _from_elsewhere(server, status)
    if told.code == PlaybookInvalid.code:
        return PlaybookInvalid(told.problems or (told.detail,))
    cls = _BY_CODE.get(told.code)
    if cls is not None and cls is not NoETLError:
        return _rebuilt(cls, told)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return SettingInvalid(f"{server} does not let us in: {told.detail}")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerFailed(server, f"could not answer: {told.detail}")
    return RequestInvalid(told.detail)


def _from_elsewhere(server: str, status: int) -> NoETLError:
    """Something between us and the server speaks; it may be gone in a moment."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return LogUnavailable(f"{server} answers with status {status}; try again")
    return RequestInvalid(f"{server} answers with status {status}; is it a NoETL server?")


def _rebuilt(cls: type[NoETLError], told: ProblemTold) -> NoETLError:
    """Most facts stay on the other side; class and message are what counts here."""
    error = cls.__new__(cls)
    error.args = (told.detail,)
    vars(error).update(told.facts)
    return error


def _all(cls: type[NoETLError]) -> Iterator[type[NoETLError]]:
    yield cls
    for each in cls.__subclasses__():
        yield from _all(each)


_BY_CODE: dict[str, type[NoETLError]] = {cls.code: cls for cls in _all(NoETLError)}
