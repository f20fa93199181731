"""Spark's daemon of Python workers, with what slots need already loaded: each worker is its copy.

Spark runs it as a module, in the place of its own. Nothing that starts threads may be loaded here:
a copy has none of them.
"""

import gc
import importlib
import os

PRELOADED = ("pyspark.worker", "noetl.bootstrap.stage_slot", "noetl.tools.http")
"""By name: what slots are made of is picked above this room."""

FOR_SLOTS = "NOETL_SLOT_WORKERS"
"""Set for workers that only slots run in: no code of a playbook's own jobs comes after them."""


def preload() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # Spark's workers collect garbage after each task; this never is


if __name__ == "__main__":
    if FOR_SLOTS in os.environ:  # noqa: TID251 - how Spark tells its daemon anything
        preload()
    importlib.import_module("pyspark.daemon").manager()
