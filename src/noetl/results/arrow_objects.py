"""Objects as files of Arrow, where they lie: nothing is copied, and nothing is proven."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from noetl.kernel.errors import ObjectMissing, StoreUnavailable
from noetl.results.places import ObjectSource, Place


@contextmanager
def open_arrow(objects: ObjectSource, key: str) -> Iterator[Any]:
    """A `pyarrow.NativeFile`, or None where only `read` leads to the bytes. Blocks.

    Raises ObjectMissing, StoreUnavailable, also for what is read inside.
    """
    found = objects.arrow_file(key)
    if found is None:
        yield None
        return
    try:
        with found.filesystem.open_input_file(found.path) as file:
            yield file
    except FileNotFoundError as error:
        raise ObjectMissing(key) from error
    except OSError as error:  # what Arrow says of every store that does not answer
        raise StoreUnavailable(f"{key} cannot be read: {error}; try again") from error


def schema_at(place: Place, key: str) -> Any | None:
    """The schema of a table; None where it cannot be had without reading the whole. Blocks."""
    from pyarrow import ArrowException, ipc  # noqa: PLC0415 - loaded with the first table

    try:
        with open_arrow(place.objects, key) as file:
            return None if file is None else ipc.open_file(file).schema
    except (ObjectMissing, StoreUnavailable, ArrowException):
        return None  # whoever reads the whole says what is wrong
