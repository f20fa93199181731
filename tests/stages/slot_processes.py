"""The processes behind a stage on Spark: driver, JVM, and a Python process for each slot."""

import os

import psutil

DRIVER = "noetl.spark.driver_program"
DAEMONS = ("noetl.spark.worker_daemon", "pyspark.daemon")  # on this machine, and elsewhere


def driver_of(coordinator: int | None = None) -> psutil.Process:
    """The driver that this process, or the given one, has started."""
    parent = psutil.Process(coordinator or os.getpid())
    [driver] = [each for each in parent.children() if DRIVER in _command(each)]
    return driver


def jvm_of(driver: psutil.Process) -> psutil.Process:
    [jvm] = [each for each in driver.children(recursive=True) if each.name() == "java"]
    return jvm


def python_workers(leader: psutil.Process) -> list[psutil.Process]:
    """All that may be slots; some are idle."""
    below = leader.children(recursive=True)
    return [each for each in below if any(name in _command(each) for name in DAEMONS)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""
