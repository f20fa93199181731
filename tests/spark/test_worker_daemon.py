"""What the daemon of Python workers loads before it makes copies of itself."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.servers

LOADED = """
import os, sys
from noetl.spark.worker_daemon import preload
preload()
print(len(os.listdir("/proc/self/task")), "pyarrow" in sys.modules, "aiohttp" in sys.modules)
"""


def test_nothing_that_is_loaded_early_starts_threads() -> None:
    """A copy has none of them, and whoever waits for one waits for ever."""
    command = [sys.executable, "-c", LOADED]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.split() == ["1", "False", "True"]
