"""The processes behind a stage on Spark: driver, JVM, and a Python process for each slot."""

import os

import psutil

DRIVER, DAEMON = "noetl.spark.driver_program", "pyspark.daemon"


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
    return [each for each in leader.children(recursive=True) if DAEMON in _command(each)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""
