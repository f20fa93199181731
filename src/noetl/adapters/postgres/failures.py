"""The driver's errors as ours: what to try again, what a person must set right, what is a bug."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import asyncpg
from asyncpg import exceptions

from noetl.kernel.errors import InvariantBroken, NoETLError, SettingInvalid


class Treatment(Enum):
    RETRY = "the server or the way to it is at fault, for now"
    SETTING = "somebody has to change a setting or a privilege"
    BUG = "we asked for something wrong, or the data is damaged"


DRIVER_ERRORS = (
    exceptions.PostgresError,
    exceptions.InterfaceError,
    exceptions.InternalClientError,
    OSError,  # refused, reset and timed out connections
)

_BY_CLASS: dict[type[BaseException], Treatment] = {
    OSError: Treatment.RETRY,
    exceptions.ClientConfigurationError: Treatment.SETTING,
    exceptions.FatalPostgresError: Treatment.RETRY,
    exceptions.InsufficientPrivilegeError: Treatment.SETTING,
    exceptions.InterfaceError: Treatment.RETRY,  # most of them: the connection is closed
    exceptions.InternalClientError: Treatment.RETRY,  # the server said goodbye to a resting one
    exceptions.InvalidCachedStatementError: Treatment.RETRY,  # the schema moved under the plan
    exceptions.OutdatedSchemaCacheError: Treatment.RETRY,
    exceptions.TargetServerAttributeNotMatched: Treatment.RETRY,  # no primary, while one is made
    exceptions.UnsupportedClientFeatureError: Treatment.BUG,
    exceptions.UnsupportedServerFeatureError: Treatment.SETTING,
    asyncpg.DataError: Treatment.BUG,
    asyncpg.PostgresError: Treatment.BUG,
}

_RETRY_FAMILIES = ("08", "25", "40", "53", "55", "57", "58", "72")
_SETTING_FAMILIES = ("0A", "0L", "0P", "28", "3D", "F0")
_BUG_FAMILIES = (
    "03", "09", "0B", "0F", "0Z", "10", "20", "21", "22", "23", "24", "26", "27", "2B", "2D", "2F",
    "34", "38", "39", "3B", "3F", "42", "44", "54", "HV", "P0", "XX",
)  # fmt: skip

_BY_FAMILY = {
    **dict.fromkeys(_RETRY_FAMILIES, Treatment.RETRY),
    **dict.fromkeys(_SETTING_FAMILIES, Treatment.SETTING),
    **dict.fromkeys(_BUG_FAMILIES, Treatment.BUG),
}
"""The first two characters of an SQLSTATE say what kind of error it is."""


def treatment_of(error: type[BaseException]) -> Treatment | None:
    """None for an error that nobody has thought about yet."""
    for cls in error.__mro__:
        family = str(cls.__dict__.get("sqlstate") or "")[:2]
        treatment = _BY_CLASS.get(cls) or _BY_FAMILY.get(family)
        if treatment is not None:
            return treatment
    return None


def leaves_doubt(error: BaseException) -> bool:
    """Whether what was asked for may have happened all the same.

    Not if the server itself said no and went on serving, and not if it was never asked.
    """
    said_no = isinstance(error, exceptions.PostgresError) and error.severity_en == "ERROR"
    return not said_no and treatment_of(type(error)) is Treatment.RETRY


@contextmanager
def translated(unavailable: type[NoETLError]) -> Iterator[None]:
    """Let no error of the driver out; `unavailable` is what the port calls a store that is away."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise _ours(error, unavailable) from error


def _ours(error: BaseException, unavailable: type[NoETLError]) -> NoETLError:
    words = f"{type(error).__name__}: {error}"
    match treatment_of(type(error)):
        case Treatment.RETRY:
            return unavailable(f"PostgreSQL did not answer ({words}); try again")
        case Treatment.SETTING:
            return SettingInvalid(
                f"PostgreSQL refused to serve ({words}); check its address,"
                " the user's privileges and the server's version"
            )
        case _:
            return InvariantBroken(f"PostgreSQL refused what it was asked for ({words})")
