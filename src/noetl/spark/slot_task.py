"""What a Spark task does for a slot: check where it is, run the given function, say one row.

Travels by value and imports nothing of ours before the check, so that a machine with another
version of our code says so instead of failing at an import.
"""

import gc
import importlib
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import RecordBatch

ROW_SCHEMA = "slot int, incarnation int, host string, summary binary"


def unpack_code(path: list[str], modules: dict[str, Any]) -> None:
    """Put the folder before the archive that our code came in: some of it is run as a program of
    its own, and those are files.

    The archive stays: Spark would add a missing one for each task, and the state of a worker lives
    in modules that are loaded once.
    """
    for at, entry in enumerate(path):
        name = os.path.basename(entry)
        if name.startswith("noetl-") and name.endswith(".zip") and os.path.isfile(entry):
            folder = _unpacked(entry)
            if folder not in path:
                path.insert(at, folder)
                for module in [each for each in modules if each.partition(".")[0] == "noetl"]:
                    del modules[module]  # loaded out of the archive, by another job
            return


def _unpacked(archive: str) -> str:
    folder = archive.removesuffix(".zip")
    if not os.path.isdir(folder):
        fresh = tempfile.mkdtemp(dir=os.path.dirname(archive))
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(fresh)
        try:
            os.rename(fresh, folder)
        except OSError:  # another worker was quicker
            shutil.rmtree(fresh)
    return folder


def versions() -> dict[str, str]:
    """What must be the same where a job is made and where it runs."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    arrow = str(importlib.import_module("pyarrow").__version__)
    try:
        noetl = str(importlib.import_module("noetl").__version__)
    except ImportError:
        noetl = "none"
    return {"noetl": noetl, "Python": python, "Arrow": arrow}


def check_versions(expected: dict[str, str], here: dict[str, str], host: str) -> None:
    differences = [
        f"{name} {here[name]} where the driver has {version}"
        for name, version in expected.items()
        if here[name] != version
    ]
    if differences:
        raise RuntimeError(f"this slot does not start: {host} has {', '.join(differences)}")


def frozen(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Spark's workers collect garbage after each task; what is loaded by then is never garbage.

    Taken out of the collector's sight once per worker, it costs nothing after later tasks.
    """

    def run(batches: Any) -> Iterator[Any]:
        yield from function(batches)
        if gc.get_freeze_count() == 0:
            gc.collect()
            gc.freeze()

    return run


def slot_task(
    job: dict[str, Any], expected: dict[str, str]
) -> Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]:
    """A function for `mapInArrow` over the numbers of slots."""

    def run(batches: Iterator["RecordBatch"]) -> Iterator["RecordBatch"]:
        host = platform.node()
        unpack_code(sys.path, sys.modules)
        check_versions(expected, versions(), host)
        pyarrow = importlib.import_module("pyarrow")
        run_slot = importlib.import_module("noetl.spark.slots").run_slot
        for batch in batches:
            for number in batch.column(0).to_pylist():
                incarnation, summary = run_slot(job, number)
                row = [[number], [incarnation], [host], [summary]]
                types = (pyarrow.int32(), pyarrow.int32(), pyarrow.string(), pyarrow.binary())
                names = [part.split()[0] for part in ROW_SCHEMA.split(", ")]
                columns = [pyarrow.array(*pair) for pair in zip(row, types, strict=True)]
                yield pyarrow.RecordBatch.from_arrays(columns, names=names)

    return frozen(run)
