"""Fail a test in which the process takes more memory than it may."""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

MIB = 1024 * 1024
SAMPLE_SECONDS = 0.002


@contextmanager
def bounded_memory(bytes_max: int) -> Iterator[None]:
    """Look at the process while the block runs, native memory of drivers included."""
    process, done, peaks = psutil.Process(), threading.Event(), [0]
    _give_back_free_memory()
    before = process.memory_info().rss

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            peaks.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    growth = max(peaks) - before
    assert growth <= bytes_max, f"memory grew by {growth / MIB:.0f} MiB"


def _give_back_free_memory() -> None:
    """What the allocator keeps from earlier tests would hide how much this one takes."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim(0)
