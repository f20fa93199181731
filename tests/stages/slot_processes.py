"""The processes behind a stage on Spark: driver, JVM or executors, and one for each slot."""

import os

import psutil

from noetl.servers.spark_cluster import SparkCluster

DRIVER = "noetl.spark.driver_program"
EXECUTOR = "CoarseGrainedExecutorBackend"
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


def executors(cluster: SparkCluster) -> list[psutil.Process]:
    return [
        process
        for worker in cluster.workers
        for process in psutil.Process(worker.pid).children()
        if EXECUTOR in _command(process)
    ]


def executor_of(cluster: SparkCluster, slot: psutil.Process) -> psutil.Process:
    [found] = [each for each in executors(cluster) if slot in each.children(recursive=True)]
    return found


def _command(process: psutil.Process) -> str:
    """Empty for a process that is gone: a killed one may stay a zombie below its parent."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""
