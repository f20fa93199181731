"""Spark as a source of slots: a driver in a process of its own, and jobs that run our functions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from noetl.domain.naming.placement import CellPlacement


def register(
    spark: "SparkSession",
    *,
    home: "str | Path | None" = None,
    url: str | None = None,
    placement: "CellPlacement | None" = None,
) -> None:
    """Let a session of your own read results by name: `spark.read.format("noetl.results")`.

    They lie in a home, or in the store that `url` names as NOETL_PAYLOAD_URL would.
    """
    from noetl.kernel.errors import RequestInvalid  # noqa: PLC0415 - loaded on first use
    from noetl.spark.data_source import register_at  # noqa: PLC0415 - loads pyspark
    from noetl.spark.object_place import (  # noqa: PLC0415 - as above
        ObjectPlace,
        place_at,
        url_of_home,
    )

    if (home is None) == (url is None):
        raise RequestInvalid("say where results lie: give a home, or the url of a store")
    where = url if url is not None else url_of_home(home or "")
    default = ObjectPlace(url=where).placement
    register_at(spark, place_at(where, placement or default))
