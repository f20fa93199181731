"""What the driver's errors mean in ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from obstore import exceptions

from noetl.kernel.errors import ObjectMissing, StoreUnavailable

ADVICE: dict[type[exceptions.BaseError], str] = {
    exceptions.GenericError: "did not answer as it should; try again",
    exceptions.JoinError: "was not asked, the driver is stopping; try again",
    exceptions.AlreadyExistsError: "has it already",
    exceptions.PreconditionError: "has another writer for it; try again",
    exceptions.NotModifiedError: "has another writer for it; try again",
    exceptions.PermissionDeniedError: "denies this; give the credentials the missing right",
    exceptions.UnauthenticatedError: "does not know the credentials; check the settings",
    exceptions.NotSupportedError: "cannot do this; use another store",
    exceptions.InvalidPathError: "does not take this name; rename the tenant or organization",
    exceptions.UnknownConfigurationKeyError: "has no such setting; check the settings",
}
"""Every error class of the driver, save the one for what is not there."""

_PLACE_MISSING = ("NoSuchBucket", "ContainerNotFound")


@contextmanager
def translated(subject: str) -> Iterator[None]:
    """Raise the driver's errors as ours, naming what was asked for."""
    try:
        yield
    except FileNotFoundError as error:
        advice = "has no such bucket or container; check the settings"
        raise _unavailable(subject, advice, error) from error
    except exceptions.BaseError as error:
        advice = ADVICE.get(type(error), ADVICE[exceptions.GenericError])
        raise _unavailable(subject, advice, error) from error


@contextmanager
def missing(url: str) -> Iterator[None]:
    """Inside `translated`: where nothing is found, the object is missing."""
    try:
        yield
    except FileNotFoundError as error:
        # Without its bucket no object is known to be missing.
        if any(code in str(error) for code in _PLACE_MISSING):
            raise
        raise ObjectMissing(url) from error


def _unavailable(subject: str, advice: str, error: Exception) -> StoreUnavailable:
    first_line = str(error).partition("\n")[0]
    return StoreUnavailable(f"{subject}: the object store {advice} ({first_line})")
