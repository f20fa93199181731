"""Jobs that playbooks run on Spark: one query or function over named inputs, owned by its cycle."""

from typing import Any, Protocol

import msgspec

from noetl.domain.events.values import ResultReference


class SparkInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a name stands for: one of a stored result, rows, files or a table of Spark's."""

    name: str
    result: str | None = None  # `noetl://…`
    rows: list[Any] | None = None
    format: str | None = None
    path: str | None = None
    table: str | None = None
    options: dict[str, str] = {}


class SparkWrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the rows go instead of becoming the result."""

    format: str = "parquet"
    path: str | None = None
    table: str | None = None
    mode: str = "error"  # append, overwrite, ignore, error
    partition_by: list[str] = []
    options: dict[str, str] = {}


class SparkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """`cycle` is the same whenever this work runs again, and so are the tag and, with Connect,
    the session that follow from it. `result` is the name of what this holder of it makes."""

    cycle: str
    result: str
    attempt: int = 1  # rises with every retry by a rule
    query: str | None = None
    code: str | None = None
    function: str | None = None  # in the code, or `package.module.function`
    inputs: list[SparkInput] = []
    arguments: dict[str, Any] = {}  # further ones, for a function
    write: SparkWrite | None = None
    options: dict[str, str] = {}  # of the session
    libs: dict[str, str] = {}  # name in the code -> module
    description: str = ""
    is_repeatable: bool = True  # False: when it is lost it is in doubt


class SparkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Plain data; or a table that was stored under the name of the result."""

    value: Any = None
    reference: ResultReference | None = None


class SparkJobs(Protocol):
    async def run(self, order: SparkOrder) -> SparkAnswer:
        """Returns when the job is over; whoever stops waiting for it has cancelled it, and then
        nothing of it runs any more. A result that an earlier holder of the cycle stored is
        taken over. Raises SparkError, and RequestInvalid for what cannot be meant."""
        ...
